import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Records whose server state is not known here, such as those of rejected operations:
/// `ferry_refresh`. The next pull fetches them whole and applies them with its list.
struct RefreshTable {
  let connection: SQLiteConnection

  /// The number of records in one request.
  private static let batch = Limits.standard.recordsPerRequest

  /// Makes the next pull fetch these records, except those of upload-only tables.
  func add(_ keys: some Sequence<RecordKey>) throws {
    let insert = try connection.statement(
      """
      INSERT INTO ferry_refresh(tbl, record) VALUES (?, ?)
      ON CONFLICT(tbl, record) DO UPDATE SET fetched = 0
      """)
    let uploads = try TrackedTables(connection: connection).uploads()
    for key in keys where !uploads.contains(key.table) { try insert.run(key.table, key.record) }
  }

  /// Notes until the next pull that the server overruled an operation on a record without a conflict.
  ///
  /// - Parameter isListed: whether the next list has the record, if the server has it.
  func addOverruled(_ key: RecordKey, isListed: Bool) throws {
    try connection.run(
      """
      INSERT INTO ferry_refresh(tbl, record, fetched, overruled) VALUES (?, ?, ?, 1)
      ON CONFLICT(tbl, record) DO UPDATE SET fetched = min(fetched, excluded.fetched), overruled = 1
      """, key.table, key.record, Int64(isListed ? 1 : 0))
  }

  /// Whether the server overruled an operation on a record without a conflict.
  func isOverruled(_ key: RecordKey) throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM ferry_refresh WHERE tbl = ? AND record = ? AND overruled = 1", key.table,
      key.record)
  }

  /// Returns the next records to fetch.
  func next() throws -> [RecordKey] {
    try connection.rows(
      "SELECT tbl, record FROM ferry_refresh WHERE fetched = 0 ORDER BY tbl, record LIMIT ?",
      Self.batch
    ) { RecordKey(table: $0.name(0), record: $0.name(1)) }
  }

  func isEmpty() throws -> Bool { try !connection.exists("SELECT 1 FROM ferry_refresh LIMIT 1") }

  func contains(_ key: RecordKey) throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM ferry_refresh WHERE tbl = ? AND record = ?", key.table, key.record)
  }

  func markFetched(_ key: RecordKey) throws {
    try connection.run(
      "UPDATE ferry_refresh SET fetched = 1 WHERE tbl = ? AND record = ?", key.table, key.record)
  }

  /// Removes the records that were fetched.
  func removeFetched() throws { try connection.run("DELETE FROM ferry_refresh WHERE fetched = 1") }

  /// Makes the next pull fetch the records again that were fetched.
  func fetchAgain() throws {
    try connection.run("UPDATE ferry_refresh SET fetched = 0 WHERE fetched <> 0")
  }

  /// Removes the records of a table.
  func remove(table: Name) throws {
    try connection.run("DELETE FROM ferry_refresh WHERE tbl = ?", table)
  }
}
