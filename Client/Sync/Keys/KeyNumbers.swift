import FerryProtocol
import FerrySQLite

/// The numbers that this device gives to the records of mapped tables, in the table `ferry_keys`.
struct KeyNumbers {
  static let schema = """
    CREATE TABLE ferry_keys(                  -- this device's numbers of records
      tbl TEXT NOT NULL,
      number INTEGER NOT NULL,
      record TEXT NOT NULL,
      grp INTEGER,                            -- the transaction that reserved or released the
                                              -- number; NULL: its row exists
      PRIMARY KEY(tbl, number)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX ferry_keys_record ON ferry_keys(tbl, record);
    """

  // Unowned, since the connection owns the functions that own this.
  unowned let connection: SQLiteConnection

  /// Returns the record of a number; `nil` if it has none.
  func record(of number: Int64, in table: Name) throws -> NumberedRecord? {
    try connection.first(
      "SELECT record, grp FROM ferry_keys WHERE tbl = ? AND number = ?", table, number
    ) { NumberedRecord(record: $0.text(0), transaction: $0.isNull(1) ? nil : $0.int64(1)) }
  }

  /// Returns the number of a record; `nil` if it has none.
  func number(of record: String, in table: Name) throws -> Int64? {
    try place(of: record, in: table)?.number
  }

  private func place(
    of record: String, in table: Name
  ) throws -> (number: Int64, state: NumberedRecord)? {
    try connection.first(
      "SELECT number, grp FROM ferry_keys WHERE tbl = ? AND record = ?", table, record
    ) {
      let transaction = $0.isNull(1) ? nil : $0.int64(1)
      return ($0.int64(0), NumberedRecord(record: record, transaction: transaction))
    }
  }

  /// Keeps the record of a number, instead of an earlier one.
  func set(_ state: NumberedRecord, of number: Int64, in table: Name) throws {
    let lastRow = connection.lastInsertedRow
    try connection.run(
      "INSERT OR REPLACE INTO ferry_keys(tbl, number, record, grp) VALUES (?, ?, ?, ?)", table,
      number, state.record, state.transaction)
    connection.lastInsertedRow = lastRow
  }

  /// Returns the number of a record, and chooses a free one if there is none.
  ///
  /// - Parameter transaction: the transaction that inserts the row.
  /// - Throws: ``CaptureRefusal`` if all numbers are taken.
  func choose(for record: String, in table: Name, transaction: Int64) throws -> Int64 {
    if let known = try place(of: record, in: table) {
      let state = NumberedRecord.chosen(known.state, for: record, in: transaction)
      if state != known.state { try set(state, of: known.number, in: table) }
      return known.number
    }
    let newest = try max(
      connection.first("SELECT max(number) FROM ferry_keys WHERE tbl = ?", table) {
        $0.int64(0)
      } ?? 0, newestRow(of: table))
    guard newest < .max else {
      throw CaptureRefusal("ferry: the table \(table) has no integer left for another row")
    }
    let number = max(newest, 0) + 1
    try set(
      NumberedRecord.chosen(nil, for: record, in: transaction), of: number, in: table)
    return number
  }

  private func newestRow(of table: Name) throws -> Int64 {
    let local = try connection.first("SELECT local FROM ferry_tables WHERE name = ?", table) {
      $0.name(0)
    }
    guard let local else { return 0 }
    let key = try connection.first("SELECT name FROM pragma_table_info(?) WHERE pk = 1", local) {
      $0.name(0)
    }
    guard let key else { return 0 }
    return try connection.first("SELECT max(\(quoted(key))) FROM \(quoted(local))") {
      $0.int64(0)
    } ?? 0
  }

  /// Gives records to rows that were written unrecorded, and releases the numbers of those that are
  /// gone.
  ///
  /// - Parameter fresh: returns a new identifier.
  func takeRows(of table: TableSchema, fresh: () -> String) throws {
    guard table.identity == .mapped else { return }
    let (key, place) = (quoted(table.key), quoted(table.local))
    try connection.run(
      """
      UPDATE ferry_keys SET grp = \(NumberedRecord.pull) WHERE tbl = ?1 AND grp IS NULL
        AND NOT EXISTS (SELECT 1 FROM \(place) WHERE \(key) = number)
      """, table.name)
    try connection.run(
      """
      DELETE FROM ferry_keys WHERE tbl = ?1 AND grp IS NOT NULL
        AND EXISTS (SELECT 1 FROM \(place) WHERE \(key) = number)
      """, table.name)
    let numbers = try connection.rows(
      """
      SELECT \(key) FROM \(place) WHERE typeof(\(key)) = 'integer' AND \(key) NOT IN
        (SELECT number FROM ferry_keys WHERE tbl = ?1) ORDER BY \(key)
      """, table.name
    ) { $0.int64(0) }
    for number in numbers {
      try set(NumberedRecord(record: fresh(), transaction: nil), of: number, in: table.name)
    }
  }
}
