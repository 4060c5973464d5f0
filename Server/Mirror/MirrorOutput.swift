import FerryPostgres
import FerrySQLite
import FerrySyncClient

/// Brings changed rows of the replica into the tables of PostgreSQL.
struct MirrorOutput: Sendable {
  let file: MirrorFile
  /// The path of the replica.
  let path: String
  let sql: [MirrorSQL]
  let replica: Replica
  let pool: PostgresPool
  let ledger: MirrorLedger
  let log: Mirror.Log

  /// The result of bringing rows.
  enum Result: Sendable {
    case nothing, brought
    /// The space lacks some of the rows, or has to delete some.
    case needsMore
  }

  /// Brings the changed rows into the tables.
  func bring() async throws -> Result {
    guard try await replica.read({ try file.hasChanges($0) }) else { return .nothing }
    let deferred = try await pool.run { try ledger.deferred($0) }
    let turn = try await replica.write { database in
      // Each change may be what they wait for.
      for row in deferred {
        guard let table = file.plan.table(row.table), let key = try? table.values(ofKey: row.key)
        else { continue }
        try file.note(table, key, database)
      }
      return try file.beginTurn(database)
    }
    let brought: Brought
    do {
      brought = try await bring(before: turn, isCareful: false)
    } catch let error as PostgresError where error.isAboutRow {
      brought = try await bring(before: turn, isCareful: true)
    }
    try await replica.write { try file.endTurn(turn, $0) }
    log("applied", "\(brought.count) rows")
    for entry in brought.refused { try await replica.discardQuarantined(entry) }
    return brought.hasCaptured || !brought.refused.isEmpty ? .needsMore : .brought
  }

  /// The result of a step.
  private struct Brought: Sendable {
    var count: Int
    var hasCaptured: Bool
    /// Entries of the quarantine whose rows are noted in PostgreSQL.
    var refused: [Int64]
  }

  private func bring(
    before turn: Int64, isCareful: Bool
  ) async throws -> Brought {
    let ended = try await replica.read { try file.ended($0) }
    return try await pool.run { connection in
      let source = try SQLiteConnection(path: path, mode: .readOnly)
      // One state of the file, whatever is written to it meanwhile.
      return try source.transaction(.deferred) {
        try connection.transaction { connection in
          // The server refused the inserts: the space did not delete these rows.
          let refused = try file.refusedInserts(source)
          try ledger.note(refused.rows, connection)
          var step = try MirrorStep(connection, ledger, sql, isCareful: isCareful)
          let applied = try source.first("SELECT applied FROM ferry_replica") { $0.int64(0) } ?? 0
          try file.changes(before: turn, source) { try step.add($0) }
          try step.finish()
          try ledger.note(turn: turn, after: ended, applied: applied, connection)
          return Brought(
            count: step.count, hasCaptured: step.hasCaptured, refused: refused.entries)
        }
      }
    }
  }
}
