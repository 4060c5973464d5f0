import FerryProtocol
import SQLite

/// Writes captured rows to `ferry_pending`, in the midst of the user's statement and within its
/// savepoint: where the statement fails, nothing of it stays.
final class OperationRecorder {
  // Unowned, since the connection owns the functions that own this.
  private unowned let connection: SQLiteConnection
  private unowned let context: CaptureContext

  init(connection: SQLiteConnection, context: CaptureContext) {
    self.connection = connection
    self.context = context
  }

  /// Records the row that was collected as one operation.
  ///
  /// - Throws: ``CaptureRefusal`` for what is too large; ``SQLiteError``.
  func record(
    _ kind: OperationKind, table: UnsafeBufferPointer<UInt8>, record: UnsafeBufferPointer<UInt8>
  ) throws {
    let group = try context.currentGroup(start: readStart)
    let id = try context.nextOperation().get().value
    let (table, record) = (UnsafeRawBufferPointer(table), UnsafeRawBufferPointer(record))
    // What was kept of a record that is deleted would bring it back in parts; the server has it.
    let met = kind == .delete ? try forgetKept(table, record) : 0
    let insert = try connection.statement(
      """
      INSERT INTO ferry_pending(id, grp, base, tbl, record, kind, data, met, was, marks)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    withUnsafeBytes(of: (id.high.bigEndian, id.low.bigEndian)) { insert.bind(1, blob: $0) }
    insert.bind(2, group.number)
    insert.bind(3, group.base)
    insert.bind(4, text: table)
    insert.bind(5, text: record)
    insert.bind(6, kind.rawValue)
    context.withRow { insert.bind(7, text: UnsafeRawBufferPointer($0)) }
    insert.bind(8, met)
    if kind == .update {
      context.withFormer { insert.bind(9, text: UnsafeRawBufferPointer($0)) }
      context.withMarks { insert.bind(10, text: UnsafeRawBufferPointer($0)) }
    }
    // The user asks for the row of the user's own.
    let lastRow = connection.lastInsertedRow
    try insert.run()
    connection.lastInsertedRow = lastRow
  }

  /// What a group begins with, read inside the user's transaction.
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

  /// Answers with how many changes were kept of the record.
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
