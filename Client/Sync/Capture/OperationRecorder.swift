import FerryProtocol
import FerrySQLite

/// Writes captured rows to `ferry_operations`, during the user's statement and within the
/// statement's savepoint. If the statement fails, no row stays.
final class OperationRecorder {
  // Unowned, since the connection owns the functions that own this.
  private unowned let connection: SQLiteConnection
  private unowned let context: CaptureContext

  /// The place of the newest operation ever recorded. SQLite's AUTOINCREMENT would write to a
  /// separate table for each row, and users may change that table.
  static let newestOrder = """
    max(ifnull((SELECT max(seq) FROM ferry_operations), 0), (SELECT removed_order FROM ferry_replica))
    """

  init(connection: SQLiteConnection, context: CaptureContext) {
    self.connection = connection
    self.context = context
  }

  /// Records the collected row as one operation, or as several if one is too small for it.
  ///
  /// - Parameter isExisting: true if the row is older than the tracking of the table.
  /// - Throws: ``CaptureRefusal`` if the row is too large; ``SQLiteError``.
  func record(
    _ kind: OperationKind, table: UnsafeBufferPointer<UInt8>, record: UnsafeBufferPointer<UInt8>,
    isExisting: Bool = false
  ) throws {
    let isDivided = isExisting || context.mode == .applying || context.mode == .rescuing
    if isDivided && context.isRowBeyondGroup { context.endGroup() }
    let group = try context.currentGroup(start: readStart)
    let (table, record) = (UnsafeRawBufferPointer(table), UnsafeRawBufferPointer(record))
    // All or nothing: only a trigger's statement undoes these writes.
    if let refusal = context.admitRow(of: table) { throw refusal }
    // Deferred changes of a deleted record would restore parts of it. The server has them.
    let concurrent = kind == .delete ? try forgetKept(table, record) : 0
    // The user expects the last row inserted by the user.
    let lastRow = connection.lastInsertedRow
    let base = isExisting ? 0 : self.base(of: group, table, record)
    var row = PendingRow(
      id: context.nextOperation(), group: group.number, base: base, table: table, record: record,
      kind: kind, concurrent: concurrent, context: context)
    let insertion = group.isPlaceComputed ? PendingRow.placedInsertion : PendingRow.insertion
    for part in context.fullParts {
      row.part = part
      try connection.statement(insertion).run(row)
      (row.part, row.kind, row.id) = (nil, .update, context.nextOperation())
    }
    try connection.statement(insertion).run(row)
    connection.lastInsertedRow = lastRow
    context.endCascade()
  }

  /// Returns the newest sequence of a record seen by the author of an operation on it.
  private func base(
    of group: CaptureContext.Group, _ table: UnsafeRawBufferPointer,
    _ record: UnsafeRawBufferPointer
  ) -> SequenceNumber {
    guard context.mode == .applying, let seen = context.seen else { return group.base }
    let key = RecordKey(
      table: Name(String(decoding: table, as: UTF8.self)),
      record: Name(String(decoding: record, as: UTF8.self)))
    return seen.base(of: key, head: group.base)
  }

  /// Reads the start values of a group, inside the user's transaction.
  func readStart() throws -> CaptureContext.Start {
    let state = try connection.first(
      """
      SELECT \(Self.newestOrder) + 1, applied, clock, clock_offset,
        (SELECT id FROM ferry_operations ORDER BY seq DESC LIMIT 1),
        removed_order > ifnull((SELECT max(seq) FROM ferry_operations), 0)
      FROM ferry_replica
      """
    ) { row in
      let newest = UniqueID(bytes: row.blobBytes(4))?.timestamp ?? .zero
      let clock = max(HybridTimestamp(rawValue: UInt64(bitPattern: row.int64(2))), newest)
      return CaptureContext.Start(
        group: row.int64(0), base: row.int64(1), clock: clock, offset: row.int64(3),
        hasRemovedNewest: row.int64(5) != 0)
    }
    guard let state else { throw CaptureRefusal("ferry: the replica's state is missing") }
    return state
  }

  /// Returns the name of a table in this file, for a message.
  ///
  /// - Parameter table: the name in the space.
  func localName(of table: UnsafeBufferPointer<UInt8>) -> String {
    let name = try? connection.first(
      "SELECT local FROM ferry_tables WHERE name = ?", SQLiteText(table)
    ) { $0.text(0) }
    return name ?? String(decoding: table, as: UTF8.self)
  }

  /// Returns the name of a column in this file, for a message.
  ///
  /// - Parameters:
  ///   - column: the name in the space.
  ///   - table: the table's name in this file.
  func localName(ofColumn column: String, in table: String) -> String {
    // In quotation marks, the name is that of the first ledger.
    let names = quoted("ferry_names")
    let name = try? connection.first(
      "SELECT col FROM \(names) WHERE tbl = ? AND first = ? AND col <> ''", table, column
    ) { $0.text(0) }
    return name ?? column
  }

  /// Returns the columns of a tracked table's key, for a message; none if they cannot be read.
  ///
  /// - Parameter table: the name in the space.
  func keyColumns(of table: UnsafeBufferPointer<UInt8>) -> [String] {
    let columns = try? connection.rows(
      """
      SELECT i.name FROM ferry_tables AS t, pragma_table_info(t.local) AS i
      WHERE t.name = ? AND i.pk > 0 ORDER BY i.pk
      """, SQLiteText(table)
    ) { $0.text(0) }
    return columns ?? []
  }

  /// Discards the record's deferred changes. Returns their number.
  private func forgetKept(
    _ table: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer
  ) throws -> Int {
    try connection.run(
      "DELETE FROM ferry_kept WHERE tbl = ? AND record = ?", SQLiteText(table), SQLiteText(record))
  }
}

/// A row of `ferry_operations`, bound from the capture's buffers.
private struct PendingRow: SQLiteBindable {
  /// The place is SQLite's next number.
  static let insertion = insertion(at: "NULL")
  static let placedInsertion = insertion(at: "\(OperationRecorder.newestOrder) + 1")

  private static func insertion(at place: String) -> String {
    """
    INSERT INTO ferry_operations(seq, id, grp, base, tbl, record, kind, data, concurrent, was, marks,
      reason)
    VALUES (\(place), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    """
  }

  var id: OperationID
  let group: Int64
  let base: SequenceNumber
  let table: UnsafeRawBufferPointer
  let record: UnsafeRawBufferPointer
  var kind: OperationKind
  let concurrent: Int
  let context: CaptureContext
  /// A full part of the row; `nil` for the last part.
  var part: CapturedRow.Part?

  func bind(to parameters: inout SQLiteParameters) {
    parameters.append(id)
    parameters.append(group)
    parameters.append(base)
    parameters.append(text: table)
    parameters.append(text: record)
    parameters.append(kind.rawValue)
    if let part {
      parameters.append(SQLiteText(part.json))
      parameters.append(concurrent)
      parameters.append(part.former.isEmpty ? nil : SQLiteText(part.former))
      parameters.append(part.marks.isEmpty ? nil : SQLiteText(part.marks))
    } else {
      parameters.append(textOf: context.withRow)
      parameters.append(concurrent)
      parameters.append(textOf: kind == .update ? context.withFormer : { _ in })
      parameters.append(textOf: kind == .update ? context.withMarks : { _ in })
    }
    parameters.append(context.reason)
  }
}

extension SQLiteParameters {
  /// Appends the text passed by `buffer`, or NULL if it passes none.
  fileprivate mutating func append(
    textOf buffer: ((UnsafeBufferPointer<UInt8>) -> Void) -> Void
  ) {
    var isBound = false
    buffer {
      append(text: UnsafeRawBufferPointer($0))
      isBound = true
    }
    if !isBound { appendNull() }
  }
}
