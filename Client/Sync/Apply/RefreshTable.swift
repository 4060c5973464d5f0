import FerryProtocol
import FerrySQLite

/// Records with unknown server state, such as those of rejected operations: `ferry_refresh`. The
/// next pull fetches them whole and applies them with the list.
struct RefreshTable {
  let connection: SQLiteConnection

  /// The number of records in one request.
  static let batch = Limits.standard.recordsPerRequest

  /// Makes the next pull fetch these records, except those of upload-only tables, and those with
  /// names unacceptable to any server.
  func add(_ keys: some Sequence<RecordKey>) throws {
    let insert = try connection.statement(
      """
      INSERT INTO ferry_refresh(tbl, record) VALUES (?, ?)
      ON CONFLICT(tbl, record) DO UPDATE SET fetched = 0
      """)
    let uploads = try TrackedTables(connection: connection).uploads()
    for key in keys where !uploads.contains(key.table) && NameRule.fault(in: key) == nil {
      try insert.run(key.table, key.record)
    }
  }

  /// Records until the next pull that the server overruled an operation on a record without a
  /// conflict.
  ///
  /// - Parameter isListed: true if the next list has the record, provided the server has it.
  func addOverruled(_ key: RecordKey, isListed: Bool) throws {
    try connection.run(
      """
      INSERT INTO ferry_refresh(tbl, record, fetched, overruled) VALUES (?, ?, ?, 1)
      ON CONFLICT(tbl, record) DO UPDATE SET fetched = min(fetched, excluded.fetched), overruled = 1
      """, key.table, key.record, Int64(isListed ? 1 : 0))
  }

  /// Returns true if the server overruled an operation on a record without a conflict.
  func isOverruled(_ key: RecordKey) throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM ferry_refresh WHERE tbl = ? AND record = ? AND overruled = 1", key.table,
      key.record)
  }

  /// Returns the next records to fetch.
  ///
  /// Removes records with names that violate a rule: one of them would make the server reject the
  /// others with it. Another program may have written such a row.
  func next(_ limit: Int = batch) throws -> [RecordKey] {
    while true {
      let keys = try connection.rows(
        """
        SELECT tbl, record FROM ferry_refresh WHERE fetched IN (0, 3) ORDER BY tbl, record LIMIT ?
        """, limit
      ) { RecordKey(table: $0.name(0), record: $0.name(1)) }
      let unusable = keys.filter { NameRule.fault(in: $0) != nil }
      if unusable.isEmpty { return keys }
      for key in unusable {
        try connection.run(
          "DELETE FROM ferry_refresh WHERE tbl = ? AND record = ?", key.table, key.record)
      }
    }
  }

  /// Returns true if no record is left for the next pull, apart from those rejected by the server.
  func isEmpty() throws -> Bool {
    try !connection.exists("SELECT 1 FROM ferry_refresh WHERE fetched NOT IN (2, 3) LIMIT 1")
  }

  /// Returns true if a pull must fetch records, also those rejected by the server before.
  func hasAny() throws -> Bool { try connection.exists("SELECT 1 FROM ferry_refresh LIMIT 1") }

  /// Makes this pull fetch the records rejected by the server once more.
  func retryRejected() throws {
    try connection.run("UPDATE ferry_refresh SET fetched = 3 WHERE fetched = 2")
  }

  /// Omits a record rejected by the server. Returns true if it was not omitted before.
  func reject(_ key: RecordKey) throws -> Bool {
    let isNew = try connection.exists(
      "SELECT 1 FROM ferry_refresh WHERE tbl = ? AND record = ? AND fetched = 0", key.table,
      key.record)
    try connection.run(
      "UPDATE ferry_refresh SET fetched = 2 WHERE tbl = ? AND record = ?", key.table, key.record)
    return isNew
  }

  /// Omits all records not fetched yet.
  func rejectAll() throws {
    try connection.run("UPDATE ferry_refresh SET fetched = 2 WHERE fetched IN (0, 3)")
  }

  func contains(_ key: RecordKey) throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM ferry_refresh WHERE tbl = ? AND record = ?", key.table, key.record)
  }

  func markFetched(_ key: RecordKey) throws {
    try connection.run(
      "UPDATE ferry_refresh SET fetched = 1 WHERE tbl = ? AND record = ?", key.table, key.record)
  }

  /// Removes the fetched records.
  func removeFetched() throws { try connection.run("DELETE FROM ferry_refresh WHERE fetched = 1") }

  /// Makes the next pull fetch the fetched records again.
  func fetchAgain() throws {
    try connection.run("UPDATE ferry_refresh SET fetched = 0 WHERE fetched = 1")
  }

  /// Removes the records of a table.
  func remove(table: Name) throws {
    try connection.run("DELETE FROM ferry_refresh WHERE tbl = ?", table)
  }
}

extension NameRule {
  /// Returns a server's reason to reject a record's name or the name of the table; `nil` if both
  /// are acceptable.
  static func fault(in key: RecordKey, limits: Limits = .standard) -> String? {
    fault(in: key.table, limits: limits) ?? fault(inRecord: key.record, limits: limits)
  }
}
