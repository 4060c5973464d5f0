import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// States that are loaded and written in slices, within a transaction.
struct SQLiteSlices: IngestSlices {
  let file: SQLiteStoreFile
  let space: Int64

  func load(_ keys: [RecordKey]) throws -> [RecordKey: (state: RecordState, bytes: Int)] {
    let find = try file.connection.statement(
      "SELECT state FROM records WHERE space = ? AND tbl = ? AND record = ?")
    var found: [RecordKey: (state: RecordState, bytes: Int)] = [:]
    for key in keys {
      found[key] = try find.first(space, key.table, StoredRecordName(key.record)) { row in
        let bytes = row.blobBytes(0)
        return (try RecordState(stored: bytes, limits: .stored), bytes.count)
      }
    }
    return found
  }

  func save(_ slice: IngestEffects) throws { try file.save(slice: slice, in: space) }
}
