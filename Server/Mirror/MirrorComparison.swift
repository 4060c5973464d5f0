import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerrySyncClient

/// Compares the rows of the tables with those of the replica, and repairs one side.
struct MirrorComparison: Sendable {
  let parts: MirrorParts

  /// Returns the differing rows. The repair of the tables is recorded, for the next step. A
  /// company's row missing in the space is never deleted so: the space gets it.
  ///
  /// - Parameters:
  ///   - tables: the compared ones; `nil` for all.
  ///   - withCaptured: whether rows count whose writes are on their way: later ones may not be.
  ///   - sparesNoted: whether a repair of the space leaves rows changed there: the next step brings
  ///     them.
  func compare(
    repairing side: Mirror.Side?, of tables: Set<Name>? = nil, withCaptured: Bool = false,
    sparesNoted: Bool = false
  ) async throws -> [Mirror.Difference] {
    var found: [Mirror.Difference] = []
    for (place, sql) in try await comparable() where tables?.contains(sql.table.name) != false {
      let query = ComparisonSQL(sql: sql).differences(
        withDeferred: side == .tables, withCaptured: withCaptured)
      found += try await parts.pool.run {
        // No comparison sees unsent rows.
        if withCaptured { try parts.ledger.unsent.sendWhole(of: sql.table.name, $0) }
        return try compare(place, sql, query, side, sparesNoted: sparesNoted, $0)
      }
    }
    guard side == .tables, !found.isEmpty else { return found }
    let differences = found
    try await parts.replica.write { database in
      for difference in differences {
        guard let table = parts.file.plan.table(difference.table.text) else { continue }
        if table.adoption != nil, !difference.isInSpace { continue }
        let key = try table.values(ofKey: difference.key)
        try parts.file.mark(table, key, database)
      }
      _ = try parts.file.beginTurn(database)
    }
    return found
  }

  /// Returns the tables with places, without copies that lack all rows yet.
  func comparable() async throws -> [(Int, MirrorSQL)] {
    let unfilled = try await parts.unfilledViews()
    return parts.sql.enumerated().filter { !unfilled.contains($1.table.name) }
      .map { ($0.offset, $0.element) }
  }

  private func compare(
    _ place: Int, _ sql: MirrorSQL, _ query: String, _ side: Mirror.Side?, sparesNoted: Bool,
    _ connection: PostgresConnection
  ) throws -> [Mirror.Difference] {
    let source = try parts.sides.openFile()
    return try connection.transaction { connection in
      try connection.execute("SET LOCAL statement_timeout = 0")
      // A hidden row fails the comparison: it would count as deleted.
      try connection.execute("SET LOCAL row_security = off")
      try connection.execute(single: ComparisonSQL(sql: sql).makeCopy)
      try MirrorCopy(connection, sql).fill { body in
        try parts.file.rows(of: place, source, body)
      }
      let rows = try connection.query(.once(query))
      var lacking: [(key: [String?], difference: Mirror.Difference)] = []
      let found = try rows.map { row in
        let difference = Mirror.Difference(
          table: sql.table.name, key: try row.array(0, of: String.self).map { $0 ?? "" },
          isInTable: try row.bool(1), isInSpace: try row.bool(2))
        let isCompanys = sql.table.adoption != nil && !difference.isInSpace
        // The next step deletes a row that the space has deleted.
        let isNoted = try side != nil && parts.file.isNoted(sql.table, difference.key, source)
        let isLacking = side == .tables && isCompanys && !isNoted
        if side == .space && !(sparesNoted && isNoted) || isLacking {
          lacking.append((try row.array(0, of: String.self), difference))
        }
        return difference
      }
      try awaitLog(lacking.map(\.key), sql, connection)
      for row in lacking { try rewrite(row.key, row.difference, sql, connection) }
      return found
    }
  }

  /// Locks rows until all former writes to them are captured: those of the log may be behind.
  private func awaitLog(
    _ keys: [[String?]], _ sql: MirrorSQL, _ connection: PostgresConnection
  ) throws {
    guard let reader = parts.sides.reader, !keys.isEmpty else { return }
    var parameters = PostgresParameters()
    for column in keys[0].indices {
      parameters.append(PostgresArray<String>(keys.map { $0[column] }))
    }
    _ = try connection.query(.once(StepSQL(sql: sql).lock), parameters)
    try reader.catchUp(within: LogReader.roundLimit)
  }

  /// Records a row of a table as a write of now.
  private func rewrite(
    _ key: [String?], _ difference: Mirror.Difference, _ sql: MirrorSQL,
    _ connection: PostgresConnection
  ) throws {
    let recapture = RecaptureSQL(sql: sql)
    let statement =
      sql.table.adoption != nil && difference.isInTable
      ? recapture.captureRow : recapture.recapture(isInTable: difference.isInTable)
    _ = try connection.query(.once(statement), [.array(PostgresArray(key))])
  }
}
