import FerryProtocol

/// The view of records, their history and conflicts for administrators, in both stores.
///
/// Values may be large, so each list is read twice: first the lengths, then as many rows as fit.
package struct RecordInspection: Sendable {
  private let store: any SyncStore

  package init(_ store: any SyncStore) { self.store = store }

  /// Returns records of a table, tombstones too, by identifier: first those other than UUIDs, then
  /// UUIDs, each by their bytes.
  ///
  /// - Parameter characters: The length of states at which the list ends. The first record is
  ///   always in it.
  package func listedRecords(
    of table: Name, in space: Int64, after record: Name?, limit: Int, characters: Int
  ) async throws(StoreError) -> [ListedRecord] {
    let start = record ?? ""
    return try await store.plain(.reading) { connection in
      let sizes = try connection.rows(
        Self.sizes,
        [.integer(space), .text(table.text), .record(start), .integer(Int64(limit))]
      ) { (try $0.recordName(0).name, try $0.integer(1)) }
      guard let end = sizes.fitting(characters) else { return [] }
      return try connection.rows(
        Self.states,
        [.integer(space), .text(table.text), .record(start), .record(end)]
      ) { try ListedRecord($0) }
    }
  }

  /// Returns a record; `nil` if there is none and no tombstone.
  package func listedRecord(
    _ key: RecordKey, in space: Int64
  ) async throws(StoreError) -> ListedRecord? {
    try await store.plain(.reading) { connection in
      try connection.rows(
        Self.one,
        [.integer(space), .text(key.table.text), .record(key.record)]
      ) { try ListedRecord($0) }.first
    }
  }

  /// Returns the operations on a record within a stretch of the space's history, the last first.
  ///
  /// - Parameters:
  ///   - stretch: The places to look at.
  ///   - characters: The length of data after which the list ends. The first operation is always
  ///     in it.
  package func history(
    of key: RecordKey, in space: Int64, within stretch: ClosedRange<SequenceNumber>, limit: Int,
    characters: Int
  ) async throws(StoreError) -> HistoryPart {
    try await store.plain(.reading) { connection in
      let end = min(stretch.upperBound, try connection.head(of: space))
      guard stretch.lowerBound <= end else { return HistoryPart(entries: [], isCut: false) }
      let stretch = stretch.lowerBound...end
      let sizes = try connection.rows(
        HistoryInspection.sizes,
        HistoryInspection.values(key, space, stretch) + [.integer(Int64(limit))]
      ) { (try $0.integer(0), try $0.integer(1)) }
      guard let last = sizes.fitting(characters) else {
        return HistoryPart(entries: [], isCut: false)
      }
      let entries = try connection.rows(
        HistoryInspection.entries,
        HistoryInspection.values(key, space, last...stretch.upperBound)
      ) { try HistoryEntry($0) }.compactMap { $0 }
      return HistoryPart(
        entries: entries,
        isCut: sizes.count == limit || sizes.fittingCount(characters) < sizes.count)
    }
  }

  /// Returns the conflicts in a space's remaining history, the last first.
  package func conflicts(
    in space: Int64, before place: ConflictPlace?, limit: Int, characters: Int
  ) async throws(StoreError) -> [ListedConflict] {
    let start = place ?? ConflictPlace(sequence: Limits.sequenceMax, device: .server)
    return try await store.plain(.reading) { connection in
      // A place behind the head has all conflicts at the head before it.
      let end = try connection.head(of: space) + 1
      let values: [PlainValue] = [
        .integer(space), .integer(min(start.sequence, end)),
        .uuid(start.sequence < end ? start.device.value : DeviceID.server.value),
      ]
      let sizes = try connection.rows(
        ConflictInspection.sizes, values + [.integer(Int64(limit))]
      ) { (1, try $0.integer(0)) }
      let count = sizes.fittingCount(characters)
      guard count > 0 else { return [] }
      return try connection.rows(
        ConflictInspection.notices, values + [.integer(Int64(count))]
      ) { try ListedConflict($0) }.compactMap { $0 }
    }
  }
}

extension PlainConnection {
  /// Returns the head of a space. Rows behind it belong to an unfinished packet.
  fileprivate func head(of space: Int64) throws -> SequenceNumber {
    try rows(
      PlainStatement("inspect_head", "SELECT head FROM spaces WHERE id = $1"), [.integer(space)]
    ) { try $0.integer(0) }.first ?? 0
  }
}

extension Array {
  /// Returns how many of the rows have together no more characters than these; one at least.
  func fittingCount<Key>(
    _ characters: Int
  ) -> Int where Element == (Key, Int64) {
    var room = Int64(characters)
    for (index, element) in enumerated() {
      room -= element.1
      if room < 0 { return Swift.max(1, index) }
    }
    return count
  }

  /// Returns the key of the last row that fits; `nil` if there are no rows.
  fileprivate func fitting<Key>(_ characters: Int) -> Key? where Element == (Key, Int64) {
    isEmpty ? nil : self[fittingCount(characters) - 1].0
  }
}

extension RecordInspection {
  fileprivate static let sizes = PlainStatement(
    "inspect_record_sizes",
    """
    SELECT record, CAST(length(state) AS bigint) FROM records
    WHERE space = $1 AND tbl = $2 AND record > $3 ORDER BY record LIMIT $4
    """)
  fileprivate static let states = PlainStatement(
    "inspect_records",
    """
    SELECT record, sequence, state FROM records
    WHERE space = $1 AND tbl = $2 AND record > $3 AND record <= $4 ORDER BY record
    """)
  fileprivate static let one = PlainStatement(
    "inspect_record",
    """
    SELECT record, sequence, state FROM records WHERE space = $1 AND tbl = $2 AND record = $3
    """)
}

/// The columns of an operation `o` of space `$1`. If an insert created its record, the next
/// operation on the record has the insert's columns as `former`. If there is no later operation,
/// the record's state has them.
enum OperationColumns {
  static let data = """
    coalesce(o.data, CASE WHEN o.kind = 0 THEN (
      SELECT former FROM operations AS next
      WHERE next.space = $1 AND next.tbl = o.tbl AND next.record = o.record
        AND next.former IS NOT NULL AND next.sequence > o.sequence
      ORDER BY next.sequence LIMIT 1
    ) END)
    """

  static let state = """
    CASE WHEN o.kind = 0 AND o.data IS NULL THEN (
      SELECT state FROM records AS r
      WHERE r.space = $1 AND r.tbl = o.tbl AND r.record = o.record
    ) END
    """

  /// The columns of a ``HistoryEntry``.
  static let entry = "id, sequence, device, kind, time, base, \(data), outcome, \(state)"

  /// An expression: the length of the largest of them together.
  static let length = """
    coalesce(length(\(data)), length(\(state)), 0) + coalesce(length(outcome), 0)
    """
}

private enum HistoryInspection {
  private static let rows = """
    FROM operations AS o WHERE space = $1 AND space + 0 = $1
      AND sequence >= $4 AND sequence <= $5 AND tbl = $2 AND record = $3
    ORDER BY sequence DESC
    """

  static let sizes = PlainStatement(
    "inspect_history_sizes",
    """
    SELECT sequence, CAST(\(OperationColumns.length) AS bigint)
    \(rows) LIMIT $6
    """)

  static let entries = PlainStatement(
    "inspect_history",
    "SELECT \(OperationColumns.entry) \(rows)")

  static func values(
    _ key: RecordKey, _ space: Int64, _ stretch: ClosedRange<SequenceNumber>
  ) -> [PlainValue] {
    [
      .integer(space), .text(key.table.text), .record(key.record),
      .integer(stretch.lowerBound), .integer(stretch.upperBound),
    ]
  }
}

private enum ConflictInspection {
  private static let rows = """
    FROM notices WHERE space = $1 AND space + 0 = $1
      AND sequence <= $2 AND (sequence < $2 OR device < $3)
    ORDER BY sequence DESC, device DESC LIMIT $4
    """

  static let sizes = PlainStatement(
    "inspect_conflict_sizes", "SELECT CAST(length(body) AS bigint) \(rows)")

  static let notices = PlainStatement("inspect_conflicts", "SELECT device, body \(rows)")
}

extension ListedRecord {
  fileprivate init(_ row: any PlainRow) throws {
    record = try row.recordName(0).name
    sequence = try row.integer(1)
    state = try row.recordState(2)
  }
}

extension HistoryEntry {
  /// Reads the columns of ``OperationColumns/entry``; they come first.
  init?(_ row: any PlainRow) throws {
    guard let id = try row.uniqueID(0), let device = try row.uniqueID(2) else { return nil }
    let code = try row.integer(3)
    guard let kind = OperationKind.allCases.first(where: { Int64($0.storedCode) == code })
    else { return nil }
    let sequence = try row.integer(1)
    var data = row.isNull(6) ? nil : try row.bytes(6)
    if data == nil, !row.isNull(8) {
      let state = try row.recordState(8)
      if state.soleInsert?.sequence == sequence { data = state.columns.encodedColumns() }
    }
    self.init(
      id: OperationID(id), sequence: sequence, device: DeviceID(device), kind: kind,
      time: HybridTimestamp(rawValue: UInt64(bitPattern: try row.integer(4))),
      base: try row.integer(5), data: data,
      outcome: row.isNull(7) ? nil : try row.bytes(7))
  }
}

extension ListedConflict {
  fileprivate init?(_ row: any PlainRow) throws {
    guard let device = try row.uniqueID(0) else { return nil }
    self.init(
      device: DeviceID(device),
      notice: try decode(try row.bytes(1)) { (reader) throws(MalformedMessage) in
        try Notice(from: &reader, limits: .stored)
      })
  }
}
