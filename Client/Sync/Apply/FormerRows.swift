import FerryProtocol
import FerrySQLite

/// Rows deleted by other devices after writes of this device: `ferry_former_rows`. An answer that
/// restores such a record needs all values of the row.
///
/// A file keeps them as long as the conflicts, one for each record.
struct FormerRows {
  let queue: OperationTable
  private var connection: SQLiteConnection { queue.connection }
  private var limits: Limits { queue.limits }

  static let schema = """
    CREATE TABLE ferry_former_rows(           -- rows that others deleted against own writes
      tbl TEXT NOT NULL,
      record TEXT NOT NULL,
      data TEXT NOT NULL,                     -- the row as it was
      time INTEGER NOT NULL, device BLOB NOT NULL, -- the delete
      PRIMARY KEY(tbl, record)
    ) WITHOUT ROWID;
    """

  /// Stores a row, instead of an earlier one of the same record.
  func store(_ row: FormerRow, of key: RecordKey) throws {
    var json = JSONWriter()
    json.columns(row.columns)
    try connection.run(
      "INSERT OR REPLACE INTO ferry_former_rows(tbl, record, data, time, device) VALUES (?, ?, ?, ?, ?)",
      key.table, key.record, SQLiteText(json.finish()), row.deleted.time.rawValue,
      row.deleted.device)
  }

  /// Returns the row of a record as this device had it last: before another device deleted it, or this
  /// one.
  func newest(of key: RecordKey, by device: DeviceID) throws -> FormerRow? {
    let stored = try row(of: key)
    guard let own = try queue.newestDelete(of: key) else { return stored }
    let deleted = Stamp(time: own.time, device: device)
    if let stored, stored.deleted > deleted { return stored }
    return FormerRow(columns: own.columns, deleted: deleted)
  }

  private func row(of key: RecordKey) throws -> FormerRow? {
    let found = try connection.first(
      "SELECT data, time, device FROM ferry_former_rows WHERE tbl = ? AND record = ?", key.table,
      key.record
    ) { row -> FormerRow? in
      guard let device = row.uniqueID(2) else { return nil }
      let time = HybridTimestamp(rawValue: UInt64(bitPattern: row.int64(1)))
      var reader = JSONReader(row.textBytes(0), depth: limits.depth)
      return FormerRow(
        columns: try reader.columns(limits: limits),
        deleted: Stamp(time: time, device: DeviceID(device)))
    }
    return found ?? nil
  }
}
