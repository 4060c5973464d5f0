import FerryPostgres
import FerrySyncClient

/// Both sides of an open mirror, for the steps that carry rows between them.
struct MirrorParts: Sendable {
  let file: MirrorFile
  /// The path of the replica.
  let path: String
  let sql: [MirrorSQL]
  let replica: Replica
  let pool: PostgresPool
  let ledger: MirrorLedger
  let log: Mirror.Log
}
