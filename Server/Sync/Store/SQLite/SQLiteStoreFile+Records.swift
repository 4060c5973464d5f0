import FerryProtocol
import FerrySQLite
import FerryStoredValues

extension SQLiteStoreFile {
  /// Returns the whole state of these records, from one snapshot.
  func records(
    _ keys: [RecordKey], in space: Int64, now: Int64
  ) throws -> Result<[UInt8], Problem> {
    try connection.transaction(.deferred) {
      let found = try connection.first(
        "SELECT epoch, head FROM spaces WHERE id = ?", space
      ) { row in
        (Epoch(UInt64(bitPattern: row.int64(0))), row.int64(1))
      }
      guard let (epoch, head) = found else {
        return .failure(.spaceGone)
      }
      var page = PageBuilder(records: keys.count, byteLimit: limits.pageBytes)
      for key in keys where page.hasRoomForRecord {
        if !(try add(key, of: space, to: &page)) { page.addAbsent(key) }
      }
      return .success(page.finishRecords(epoch: epoch, head: head, now: now))
    }
  }

  /// Returns whether the record exists or has existed for a reader.
  private func add(
    _ key: RecordKey, of space: Int64, to page: inout PageBuilder
  ) throws -> Bool {
    try connection.first(
      """
      SELECT sequence, tbl, record, state, whole_below FROM records
      WHERE space = ? AND tbl = ? AND record = ?
      """, space, key.table, StoredRecordName(key.record)
    ) { row in
      try page.add(
        sequence: row.int64(0), table: row.textBytes(1), record: row.recordName(2),
        state: row.blobBytes(3), wholeBelow: row.int64(4))
    } ?? false
  }
}
