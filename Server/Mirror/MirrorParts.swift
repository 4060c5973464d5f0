import FerryPersistence
import FerrySQLite
import FerrySyncClient

/// Both sides of a mirror for a schema of the space, for the steps that carry rows between them.
struct MirrorParts: Sendable {
  let file: MirrorFile
  let sides: MirrorRounds.Sides
  let sql: [MirrorSQL]

  var replica: Replica { sides.replica }
  var pool: any MirrorConnections { sides.pool }
  var ledger: MirrorLedger { sides.ledger }
  var log: Mirror.Log { sides.log }
}
