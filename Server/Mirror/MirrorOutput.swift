import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerrySyncClient

/// The output of changed rows from the replica to the tables of PostgreSQL.
struct MirrorOutput: Sendable {
  let parts: MirrorParts

  /// The most refused rows of a step named in the log.
  private static let loggedMax = 20

  /// The result of bringing rows.
  enum Result: Sendable {
    case nothing, brought
    /// The space lacks some of the rows, or has to delete some.
    case needsMore
  }

  /// Writes the changed rows to the tables.
  ///
  /// - Parameter retriesDeferred: whether deferred rows may succeed now, although no row has
  ///   changed.
  func write(retriesDeferred: Bool) async throws -> Result {
    let waiting = try await parts.unfilledViews()
    let isChanged = try await parts.replica.read {
      try parts.file.hasChanges(except: waiting, $0)
    }
    guard isChanged || retriesDeferred else { return .nothing }
    let deferred = try await parts.pool.run { try parts.ledger.deferred($0, canRetry: true) }
    guard isChanged || !deferred.isEmpty else { return .nothing }
    let retried = try await MirrorHolders(parts: parts).retryRefused()
    let (turn, unchanged, authors, listed) = try await parts.replica.write { database in
      let listed = try self.refused(in: database.connection, after: retried).rows
      var unchanged: Set<[String?]> = []
      // Each change may be what they wait for.
      for row in deferred {
        guard let table = parts.file.plan.table(row.table),
          let key = try? table.values(ofKey: row.key)
        else { continue }
        if try !parts.file.isNoted(table, row.key, database.connection) {
          unchanged.insert([row.table] + row.key)
        }
        try parts.file.mark(table, key, database)
      }
      let turn = try parts.file.beginTurn(database)
      try parts.file.postponeAwaited(database)
      return (turn, unchanged, try parts.file.authors(database), listed)
    }
    await parts.sides.owners.learn(authors, from: parts.replica)
    try await list(listed)
    let brought: Brought
    do {
      brought = try await writeOrSearch(
        before: turn, except: waiting, unchanged, after: retried)
    } catch let taken as NumbersTaken {
      try await MirrorRenumbering(parts: parts).renumber(taken.records, of: taken.table)
      throw WrittenMeanwhile()
    }
    for row in brought.unholdable { try await remove(row) }
    try await parts.replica.write { try parts.file.endTurn(turn, except: waiting, $0) }
    parts.log("applied", "\(brought.count.grouped) rows")
    let refused = brought.refused
    log("unsent", refused.rows.map(\.description))
    log("returned", brought.returned.map(\.description))
    parts.sides.tally.add(returned: brought.returned.count)
    if !refused.entries.isEmpty {
      try await parts.replica.write { try parts.file.recordRefused(refused.entries, $0) }
    }
    for entry in refused.entries { try await parts.replica.quarantine.discard(entry) }
    return brought.hasCaptured || !refused.entries.isEmpty ? .needsMore : .brought
  }

  private func log(_ event: String, _ rows: [String]) {
    for row in rows.prefix(Self.loggedMax) { parts.log(event, row) }
    if rows.count > Self.loggedMax {
      parts.log(event, "\((rows.count - Self.loggedMax).grouped) more rows")
    }
  }

  /// Deletes a record of the space whose key no table can hold: PostgreSQL cannot answer it.
  private func remove(_ row: RefusedRow) async throws {
    let table = parts.file.plan.tables[row.row.table]
    let key = row.row.key.map(\.keyText)
    do {
      try await parts.replica.writeMarked { database, marks in
        marks.reason = row.reason
        try MirrorRowWriter(file: parts.file, database: database).remove(row.row.key, from: table)
      }
      parts.sides.tally.add(returned: 1)
      parts.log(
        "returned",
        DeferredRow(table: table.name.text, key: key, reason: row.reason).description)
    } catch let error as ReplicaError where error.isConstraint {
      // Another record refers to it.
      try await parts.pool.run {
        try parts.ledger.defer(table.name, key, row.reason, canRetry: false, $0)
      }
    }
  }

  /// Returns the refused rows of transactions.
  ///
  /// - Parameter retried: the entries of transactions that were sent again if this could help.
  /// - Throws: ``WrittenMeanwhile`` if a pull beside this step has fetched the records of others. As
  ///   rows, they would lose what devices have added to them.
  private func refused(
    in connection: SQLiteConnection, after retried: Set<Int64>
  ) throws -> (rows: [UnsentRow], entries: [Int64]) {
    let refused = try parts.file.refused(connection)
    guard retried.isSuperset(of: refused.entries) else { throw WrittenMeanwhile() }
    return refused
  }

  /// Stores refused rows before a step: a step with many rows takes a while.
  private func list(_ refused: [UnsentRow]) async throws {
    if refused.isEmpty { return }
    try await parts.pool.run { connection in
      try connection.transaction { try parts.ledger.unsent.store(refused, $0) }
    }
  }

  /// The result of a step.
  private struct Brought: Sendable {
    var count: Int
    var hasCaptured: Bool
    /// Rows recorded as unsent, with the entries of the quarantine without further rows.
    var refused: (rows: [UnsentRow], entries: [Int64])
    /// Rows returned to the space as PostgreSQL has them.
    var returned: [DeferredRow]
    var unholdable: [RefusedRow]
  }

  /// Returns the table and the key of a row.
  private func name(of row: MirrorRow) -> [String?] {
    let table = parts.file.plan.tables[row.table]
    return [table.name.text] + ((try? table.texts(ofKey: row.key)) ?? [])
  }

  private func writeOrSearch(
    before turn: Int64, except waiting: Set<Name>, _ unchanged: Set<[String?]>,
    after retried: Set<Int64>
  ) async throws -> Brought {
    do {
      return try await write(
        before: turn, except: waiting, unchanged, after: retried, isCareful: false)
    } catch let error as PostgresError where error.isAboutRow {
      return try await write(
        before: turn, except: waiting, unchanged, after: retried, isCareful: true)
    }
  }

  /// - Parameters:
  ///   - waiting: tables whose changes do not travel yet.
  ///   - unchanged: tables and keys of deferred rows, unchanged since their last try.
  ///   - retried: the entries of refused transactions that were sent again if this could help.
  private func write(
    before turn: Int64, except waiting: Set<Name>, _ unchanged: Set<[String?]>,
    after retried: Set<Int64>, isCareful: Bool
  ) async throws -> Brought {
    let ended = try await parts.replica.read { try parts.file.ended($0) }
    return try await parts.pool.run { connection in
      let source = try parts.sides.openFile()
      // One state of the file, whatever is written to it meanwhile.
      return try source.transaction(.deferred) {
        try connection.transaction { connection in
          // The replica has the space's rows again. The programs' transactions are committed.
          let refused = try self.refused(in: source, after: retried)
          try parts.ledger.unsent.store(refused.rows, connection)
          // A refused row that returns to the space's values frees nothing: rows would be retried
          // without an end.
          let reverted = refused.rows.map { [$0.table] + $0.key }
          var step = try MirrorStep(
            connection, parts.ledger, parts.sql, space: parts.sides.configuration.space,
            unchanged: unchanged.union(reverted), isCareful: isCareful)
          step.numbers = parts.sides.numbers
          step.owner = { parts.sides.owners.owner(of: $0) }
          if let reader = parts.sides.reader {
            step.catchUp = { try reader.catchUp(within: LogReader.lockLimit) }
          }
          let applied = try source.first("SELECT applied FROM ferry_replica") { $0.int64(0) } ?? 0
          // A push beside this one may have had an answer meanwhile.
          let awaited = try parts.file.awaitedRows(source)
          try parts.file.changes(before: turn, except: waiting, source) { row in
            if !awaited.isEmpty, awaited.contains(name(of: row)) { throw WrittenMeanwhile() }
            try step.add(row)
          }
          try step.finish()
          try parts.ledger.store(turn: turn, after: ended, applied: applied, connection)
          return Brought(
            count: step.count, hasCaptured: step.hasCaptured, refused: refused,
            returned: step.returned, unholdable: step.unholdable)
        }
      }
    }
  }
}
