import FerryPostgres
import FerrySQLite
import FerrySyncClient

/// Brings changed rows of the replica into the tables of PostgreSQL.
struct MirrorOutput: Sendable {
  let parts: MirrorParts

  /// The result of bringing rows.
  enum Result: Sendable {
    case nothing, brought
    /// The space lacks some of the rows, or has to delete some.
    case needsMore
  }

  /// Brings the changed rows into the tables.
  ///
  /// - Parameter retriesDeferred: whether rows that were deferred may succeed now, although no row has changed.
  func bring(retriesDeferred: Bool) async throws -> Result {
    let isChanged = try await parts.replica.read { try parts.file.hasChanges($0) }
    guard isChanged || retriesDeferred else { return .nothing }
    let deferred = try await parts.pool.run { try parts.ledger.deferred($0, canRetry: true) }
    guard isChanged || !deferred.isEmpty else { return .nothing }
    let turn = try await parts.replica.write { database in
      // Each change may be what they wait for.
      for row in deferred {
        guard let table = parts.file.plan.table(row.table),
          let key = try? table.values(ofKey: row.key)
        else { continue }
        try parts.file.note(table, key, database)
      }
      return try parts.file.beginTurn(database)
    }
    let brought: Brought
    do {
      brought = try await bring(before: turn, isCareful: false)
    } catch let error as PostgresError where error.isAboutRow {
      brought = try await bring(before: turn, isCareful: true)
    }
    try await parts.replica.write { try parts.file.endTurn(turn, $0) }
    parts.log("applied", "\(brought.count) rows")
    for entry in brought.refused { try await parts.replica.discardQuarantined(entry) }
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
    let ended = try await parts.replica.read { try parts.file.ended($0) }
    return try await parts.pool.run { connection in
      let source = try parts.sides.openFile()
      // One state of the file, whatever is written to it meanwhile.
      return try source.transaction(.deferred) {
        try connection.transaction { connection in
          // The server refused the inserts: the space did not delete these rows.
          let refused = try parts.file.refusedInserts(source)
          try parts.ledger.note(refused.rows, connection)
          var step = try MirrorStep(connection, parts.ledger, parts.sql, isCareful: isCareful)
          let applied = try source.first("SELECT applied FROM ferry_replica") { $0.int64(0) } ?? 0
          try parts.file.changes(before: turn, source) { try step.add($0) }
          try step.finish()
          try parts.ledger.note(turn: turn, after: ended, applied: applied, connection)
          return Brought(
            count: step.count, hasCaptured: step.hasCaptured, refused: refused.entries)
        }
      }
    }
  }
}
