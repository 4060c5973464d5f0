import FerryProtocol
import SQLite

/// Writes captured rows to `ferry_pending`, during the user's statement and within its savepoint.
/// If the statement fails, no row stays.
final class OperationRecorder {
  // Unowned, since the connection owns the functions that own this.
  private unowned let connection: SQLiteConnection
  private unowned let context: CaptureContext

  init(connection: SQLiteConnection, context: CaptureContext) {
    self.connection = connection
    self.context = context
  }

  /// Records the collected row as one operation, or as several if one is too small for it.
  ///
  /// - Parameter isExisting: whether the row is older than the tracking of its table.
  /// - Throws: ``CaptureRefusal`` if the row is too large; ``SQLiteError``.
  func record(
    _ kind: OperationKind, table: UnsafeBufferPointer<UInt8>, record: UnsafeBufferPointer<UInt8>,
    isExisting: Bool = false
  ) throws {
    let isDivided = isExisting || context.mode == .applying || context.mode == .rescuing
    if isDivided && context.isRowBeyondGroup { context.endGroup() }
    let group = try context.currentGroup(start: readStart)
    // All or nothing: only a trigger's statement undoes its writes.
    if let refusal = context.admitRow() { throw refusal }
    let (table, record) = (UnsafeRawBufferPointer(table), UnsafeRawBufferPointer(record))
    // Deferred changes of a deleted record would restore parts of it. The server has them.
    let met = kind == .delete ? try forgetKept(table, record) : 0
    // The user asks for the last row that the user inserted.
    let lastRow = connection.lastInsertedRow
    let base = isExisting ? 0 : self.base(of: group, table, record)
    var kind = kind
    for part in context.fullParts {
      let insert = try begin(kind, table, record, group: group.number, base: base, met: met)
      insert.bind(7, text: part.json)
      if !part.former.isEmpty { insert.bind(9, text: part.former) }
      if !part.marks.isEmpty { insert.bind(10, text: part.marks) }
      try insert.run()
      kind = .update
    }
    let insert = try begin(kind, table, record, group: group.number, base: base, met: met)
    context.withRow { insert.bind(7, text: UnsafeRawBufferPointer($0)) }
    if kind == .update {
      context.withFormer { insert.bind(9, text: UnsafeRawBufferPointer($0)) }
      context.withMarks { insert.bind(10, text: UnsafeRawBufferPointer($0)) }
    }
    try insert.run()
    connection.lastInsertedRow = lastRow
    context.endCascade()
  }

  /// Returns the newest sequence of a record that the author of an operation on it had seen.
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

  private func begin(
    _ kind: OperationKind, _ table: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer,
    group: Int64, base: SequenceNumber, met: Int
  ) throws -> SQLiteStatement {
    let id = context.nextOperation().value
    let insert = try connection.statement(
      """
      INSERT INTO ferry_pending(id, grp, base, tbl, record, kind, data, met, was, marks)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    withUnsafeBytes(of: (id.high.bigEndian, id.low.bigEndian)) { insert.bind(1, blob: $0) }
    insert.bind(2, group)
    insert.bind(3, base)
    insert.bind(4, text: table)
    insert.bind(5, text: record)
    insert.bind(6, kind.rawValue)
    insert.bind(8, met)
    return insert
  }

  /// Reads the start values of a group, inside the user's transaction.
  func readStart() throws -> (
    group: Int64, base: SequenceNumber, clock: HybridTimestamp, offset: Int64
  ) {
    let statement = try connection.statement(
      """
      SELECT (SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'ferry_pending'),
        applied, clock, clock_offset, (SELECT id FROM ferry_pending ORDER BY seq DESC LIMIT 1)
      FROM ferry_replica
      """)
    let state = try statement.first { row in
      let newest = UniqueID(bytes: row.blobBytes(4))?.timestamp ?? .zero
      let clock = max(HybridTimestamp(rawValue: UInt64(bitPattern: row.int64(2))), newest)
      return (row.int64(0), row.int64(1), clock, row.int64(3))
    }
    guard let state else { throw CaptureRefusal("ferry: the replica's state is missing") }
    return state
  }

  /// Discards the record's deferred changes. Returns their number.
  private func forgetKept(
    _ table: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer
  ) throws -> Int {
    let remove = try connection.statement("DELETE FROM ferry_kept WHERE tbl = ? AND record = ?")
    remove.bind(1, text: table)
    remove.bind(2, text: record)
    try remove.run()
    return connection.changes
  }
}
