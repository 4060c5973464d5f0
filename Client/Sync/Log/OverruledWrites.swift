import FerryProtocol
import FerrySQLite

/// Moves this device's overruled writes into the quarantine: the driver of ``OverruledWrite``.
struct OverruledWrites {
  let operations: OperationLog
  let quarantine: QuarantineTable
  let tables: LocalTables
  let formerRows: FormerRows
  /// Returns this device's identifiers.
  let own: () throws -> OwnNames
  let wallClock: () -> Int64

  private var connection: SQLiteConnection { tables.connection }
  private var queue: OperationTable { operations.queue }

  static let schema = """
    CREATE TABLE ferry_overruled(             -- overruled writes that went to the quarantine
      operation BLOB NOT NULL,                -- the operation that overruled them
      tbl TEXT NOT NULL,
      record TEXT NOT NULL,
      sequence INTEGER NOT NULL,              -- the operation's place
      PRIMARY KEY(operation, record, tbl)
    ) WITHOUT ROWID;
    """

  /// Stores the overruled writes of a page's notices, before the page's changes are applied: the
  /// tables have the rows as they were.
  func store(_ notices: [Notice]) throws {
    guard notices.contains(where: { $0.overruling != nil }) else { return }
    let own = try own()
    for var write in OverruledWrite.all(in: notices, of: own) {
      guard try isNew(write) else { continue }
      if write.needsRow, let row = try row(of: write, by: own.device) { write.complete(with: row) }
      try store(write)
    }
  }

  /// Records a write as seen. Returns true if it was not: a list may be pulled twice. Writes before
  /// the oldest mark of the cursor were seen, and are not recorded any more.
  private func isNew(_ write: OverruledWrite) throws -> Bool {
    if try write.sequence <= CursorMarks(connection: connection).oldPlace() ?? 0 { return false }
    return try connection.run(
      "INSERT OR IGNORE INTO ferry_overruled(operation, tbl, record, sequence) VALUES (?, ?, ?, ?)",
      write.operation, write.key.table, write.key.record, write.sequence) > 0
  }

  /// Returns the row as this device had it last; `nil` if it is not known any more.
  private func row(of write: OverruledWrite, by device: DeviceID) throws -> [Column]? {
    if write.kind == .insert, let plan = try tables.plan(for: write.key.table),
      let row = try RecordRows(tables: tables).row(write.key, plan.table)
    {
      return row
    }
    return try formerRows.newest(of: write.key, by: device)?.columns
  }

  private func store(_ write: OverruledWrite) throws {
    // The entry may be sent again as it is, so it is later than the operation.
    if write.winner <= .seenMax { queue.capture.observe(write.winner) }
    var json = JSONWriter()
    json.columns(write.columns)
    try connection.run(
      """
      INSERT INTO ferry_operations(seq, state, id, grp, base, tbl, record, kind, data)
      VALUES (\(OperationRecorder.newestOrder) + 1, ?, ferry_operation(), ferry_group(), ferry_base(),
        ?, ?, ?, ?)
      """, OperationState.quarantined.rawValue, write.key.table, write.key.record,
      write.kind.rawValue, SQLiteText(json.finish()))
    queue.capture.endCascade()
    try quarantine.add(
      [queue.newestOrder()],
      Refusal(
        operation: write.operation, code: .overruled, detail: write.reason, table: write.key.table,
        record: write.key.record), now: wallClock())
    try operations.rememberClock()
    try tables.log("overruled", "\(write.key.table) \(write.key.record): \(write.reason)")
  }
}
