import FerryProtocol

/// The view of spaces, tables and activity for administrators, in both stores (SPEC.md §32). Every
/// answer is bounded, and every list continues after a place. A query walks an index from this
/// place; none reads a table whole.
package struct SpaceInspection: Sendable {
  private let store: any SyncStore

  package init(_ store: any SyncStore) { self.store = store }

  /// Returns spaces by name.
  ///
  /// - Parameters:
  ///   - name: The name after which the list continues; empty for the start.
  ///   - now: The wall clock, milliseconds since 1970.
  package func overviews(
    after name: String, limit: Int, now: Int64
  ) async throws(StoreError) -> [SpaceOverview] {
    try await store.plain(.reading) { connection in
      try connection.rows(
        Self.list,
        Self.times(now) + [.text(name), .integer(Int64(limit))]
      ) { try SpaceOverview($0) }.compactMap { $0 }
    }
  }

  /// Returns one space; `nil` if there is no such space.
  package func overview(
    of name: SpaceName, now: Int64
  ) async throws(StoreError) -> SpaceOverview? {
    try await store.plain(.reading) { connection in
      guard let space = try connection.spaceNumber(named: name) else { return nil }
      return try connection.rows(
        Self.find, [.integer(space)] + Self.times(now)
      ) { try SpaceOverview($0) }.first ?? nil
    }
  }

  /// Returns the counts of intervals from a moment on, in order. Intervals without any are absent.
  package func activity(
    in space: Int64, by unit: ActivityUnit, since moment: Int64
  ) async throws(StoreError) -> [ActivityCount] {
    try await store.plain(.reading) { connection in
      try connection.rows(
        Self.activity,
        [.integer(space), .integer(unit.milliseconds), .integer(moment)]
      ) { row in
        ActivityCount(
          at: try row.integer(0), operations: try row.integer(1), conflicts: try row.integer(2),
          rejected: try row.integer(3))
      }
    }
  }

  /// Returns the names of the tables with records, in the order of their bytes.
  package func tableNames(
    in space: Int64, after table: Name?, limit: Int
  ) async throws(StoreError) -> [Name] {
    try await store.plain(.reading) { connection in
      var names: [Name] = []
      var last = table ?? ""
      // From table to table, whatever is between them.
      while names.count < limit {
        let next = try connection.rows(
          Self.nextTable, [.integer(space), .text(last.text)]
        ) { Name(try $0.text(0)) }.first
        guard let next else { break }
        names.append(next)
        last = next
      }
      return names
    }
  }
}

extension SpaceInspection {
  /// The operations of the last hour are at most 60 rows of a space.
  ///
  /// - Parameters:
  ///   - space: The space of all other tables.
  ///   - hour: The parameter with the time an hour ago, in milliseconds since 1970.
  ///   - day: The parameter with the number of the day.
  private static func select(space: String, hour: String, day: String) -> String {
    func all(_ column: String, _ condition: String = "") -> String {
      """
      coalesce((SELECT u.\(column) FROM usage AS u
        WHERE u.space = \(space) AND u.principal = '' \(condition)), 0)
      """
    }
    return """
      SELECT s.id, n.name, s.epoch, s.head, s.retention_horizon, s.retention, s.schema_version,
        (SELECT CAST(coalesce(sum(a.operations), 0) AS bigint) FROM space_activity AS a
          WHERE a.space = \(space) AND a.unit = 60000 AND a.at > \(hour)),
        \(all("bytes")), \(all("records")), \(all("devices")), \(all("packets")),
        \(all("packet_bytes")), CAST(\(day) AS bigint), \(all("written", "AND u.day = \(day)"))
      FROM space_names AS n JOIN spaces AS s ON s.id = n.id
      """
  }

  /// The parameters of ``select(space:hour:day:)``: an hour ago, and the number of the day.
  fileprivate static func times(_ now: Int64) -> [PlainValue] {
    [.integer(now - ActivityUnit.hour.milliseconds), .integer(now / Usage.dayLength)]
  }

  fileprivate static let list = PlainStatement(
    "inspect_spaces",
    select(space: "s.id", hour: "$1", day: "$2") + " WHERE n.name > $3 ORDER BY n.name LIMIT $4")
  fileprivate static let find = PlainStatement(
    "inspect_space", select(space: "$1", hour: "$2", day: "$3") + " WHERE s.id = $1")

  fileprivate static let activity = PlainStatement(
    "inspect_activity",
    """
    SELECT at, operations, conflicts, rejected FROM space_activity
    WHERE space = $1 AND unit = $2 AND at >= $3 ORDER BY at
    """)

  fileprivate static let nextTable = PlainStatement(
    "inspect_tables",
    "SELECT tbl FROM records WHERE space = $1 AND tbl > $2 ORDER BY tbl LIMIT 1")
}

extension SpaceOverview {
  fileprivate init?(_ row: any PlainRow) throws {
    guard let name = SpaceName(try row.text(1)) else { return nil }
    space = SpaceSummary(
      id: try row.integer(0), name: name, epoch: Epoch(UInt64(bitPattern: try row.integer(2))),
      head: try row.integer(3), retentionHorizon: try row.integer(4),
      retention: Retention(milliseconds: try row.optionalInteger(5)))
    schemaVersion = try row.integer(6)
    lastHour = try row.integer(7)
    var usage = Usage()
    usage.stored = try (8...14).map { try row.integer($0) }
    self.usage = usage
  }
}
