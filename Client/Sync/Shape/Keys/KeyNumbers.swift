import FerryProtocol
import FerrySQLite

/// The numbers given by this device to the records of mapped tables, in the table `ferry_keys`.
///
/// If a table has rows of several spaces, all numbers are in the first space's ledger: they are
/// numbers of one table, and a row keeps the number and the record when it moves.
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

  /// The place where the numbers of a table are kept.
  private struct Book {
    /// The table of numbers, as SQL.
    var keys = "ferry_keys"
    /// The table's name there.
    var table: Name
  }

  private func book(_ table: Name) throws -> Book {
    guard connection.namespace.number > 1 else { return Book(table: table) }
    // In quotation marks, names are those of the first ledger.
    let shared = try connection.first(
      """
      SELECT base.name FROM ferry_tables AS own JOIN \(quoted("ferry_tables")) AS base
        ON base.local = own.local
      WHERE own.name = ? AND own.space_column IS NOT NULL
      """, table
    ) { $0.name(0) }
    return shared.map { Book(keys: quoted("ferry_keys"), table: $0) } ?? Book(table: table)
  }

  /// Returns the record of a number; `nil` if it has none.
  func record(of number: Int64, in table: Name) throws -> NumberedRecord? {
    let book = try book(table)
    return try connection.first(
      "SELECT record, grp FROM \(book.keys) WHERE tbl = ? AND number = ?", book.table, number
    ) { NumberedRecord(record: $0.text(0), transaction: $0.isNull(1) ? nil : $0.int64(1)) }
  }

  /// Returns the number of a record; `nil` if it has none.
  func number(of record: String, in table: Name) throws -> Int64? {
    try place(of: record, in: book(table))?.number
  }

  private func place(
    of record: String, in book: Book
  ) throws -> (number: Int64, state: NumberedRecord)? {
    try connection.first(
      "SELECT number, grp FROM \(book.keys) WHERE tbl = ? AND record = ?", book.table, record
    ) {
      let transaction = $0.isNull(1) ? nil : $0.int64(1)
      return ($0.int64(0), NumberedRecord(record: record, transaction: transaction))
    }
  }

  /// Stores the record of a number, instead of an earlier one.
  func set(_ state: NumberedRecord, of number: Int64, in table: Name) throws {
    try set(state, of: number, in: book(table))
  }

  private func set(_ state: NumberedRecord, of number: Int64, in book: Book) throws {
    let lastRow = connection.lastInsertedRow
    try connection.run(
      "INSERT OR REPLACE INTO \(book.keys)(tbl, number, record, grp) VALUES (?, ?, ?, ?)",
      book.table,
      number, state.record, state.transaction)
    connection.lastInsertedRow = lastRow
  }

  /// Returns the number of a record, and chooses a free one if there is none. It prefers the number
  /// on the inserting device, if no other record has or had it here.
  ///
  /// - Parameters:
  ///   - transaction: the transaction that inserts the row.
  ///   - wished: the numbers that are left for other records of the pull list.
  ///   - list: the numbers by another database; `nil` if the replica counts.
  /// - Throws: ``CaptureRefusal`` if all numbers are taken; ``NumberingFailure``.
  func choose(
    for record: String, in table: Name, transaction: Int64, besides wished: WishedNumbersSource,
    by list: NumberedList?
  ) throws -> Int64 {
    let book = try book(table)
    if let known = try place(of: record, in: book) {
      let state = NumberedRecord.chosen(known.state, for: record, in: transaction)
      if state != known.state { try set(state, of: known.number, in: book) }
      return known.number
    }
    let number =
      if let list {
        try counted(for: Name(record), in: book, table, wished, list)
      } else {
        try free(UniqueID(record)?.number, in: book, table) ?? next(in: book, table, wished)
      }
    try set(
      NumberedRecord.chosen(nil, for: record, in: transaction), of: number, in: book)
    return number
  }

  /// Returns the number that another database has for a record.
  private func counted(
    for record: Name, in book: Book, _ table: Name, _ wished: WishedNumbersSource,
    _ list: NumberedList
  ) throws -> Int64 {
    let number = try list.number(of: record, in: table) {
      try wished.removeRecords(of: table).filter { try place(of: $0.text, in: book) == nil }
    }
    if let free = try free(number, in: book, table) { return free }
    guard
      let other = try free(list.newNumber(of: record, in: table), in: book, table)
    else { throw NumberingFailure(message: "ferry: table \(table): a number is taken twice") }
    return other
  }

  /// Returns a number if no record and no row has it.
  private func free(_ number: Int64?, in book: Book, _ table: Name) throws -> Int64? {
    guard let number,
      try !connection.exists(
        "SELECT 1 FROM \(book.keys) WHERE tbl = ? AND number = ?", book.table, number)
    else { return nil }
    guard let (local, key) = try place(of: table) else { return number }
    let isRow = try connection.exists(
      "SELECT 1 FROM \(quoted(local)) WHERE \(quoted(key)) = ?", number)
    return isRow ? nil : number
  }

  /// Returns the number after the largest.
  private func next(
    in book: Book, _ table: Name, _ wished: WishedNumbersSource
  ) throws -> Int64 {
    let newest = try max(
      connection.first("SELECT max(number) FROM \(book.keys) WHERE tbl = ?", book.table) {
        $0.int64(0)
      } ?? 0, newestRow(of: table))
    guard let number = try wished.numbers().number(after: newest, in: table) else {
      throw CaptureRefusal("ferry: the table \(table) has no integer left for another row")
    }
    return number
  }

  /// Returns the local names of the table and the key.
  private func place(of table: Name) throws -> (local: Name, key: Name)? {
    let local = try connection.first("SELECT local FROM ferry_tables WHERE name = ?", table) {
      $0.name(0)
    }
    guard let local else { return nil }
    let key = try connection.first("SELECT name FROM pragma_table_info(?) WHERE pk = 1", local) {
      $0.name(0)
    }
    return key.map { (local, $0) }
  }

  private func newestRow(of table: Name) throws -> Int64 {
    guard let (local, key) = try place(of: table) else { return 0 }
    return try connection.first("SELECT max(\(quoted(key))) FROM \(quoted(local))") {
      $0.int64(0)
    } ?? 0
  }

  /// Gives records to unrecorded rows, and releases the numbers of removed rows.
  ///
  /// - Parameter fresh: returns a new identifier of a row with a number in a table.
  func assignRows(
    of table: TableSchema, fresh: (_ number: Int64, _ table: Name) throws -> String
  ) throws {
    guard table.identity == .mapped else { return }
    let (key, place) = (quoted(table.key), quoted(table.local))
    let book = try book(table.name)
    try connection.run(
      """
      UPDATE \(book.keys) SET grp = \(NumberedRecord.pull) WHERE tbl = ?1 AND grp IS NULL
        AND NOT EXISTS (SELECT 1 FROM \(place) WHERE \(key) = number)
      """, book.table)
    try connection.run(
      """
      DELETE FROM \(book.keys) WHERE tbl = ?1 AND grp IS NOT NULL
        AND EXISTS (SELECT 1 FROM \(place) WHERE \(key) = number)
      """, book.table)
    let numbers = try connection.rows(
      """
      SELECT \(key) FROM \(place) WHERE typeof(\(key)) = 'integer' AND \(key) NOT IN
        (SELECT number FROM \(book.keys) WHERE tbl = ?1) ORDER BY \(key)
      """, book.table
    ) { $0.int64(0) }
    for number in numbers {
      let state = NumberedRecord(record: try fresh(number, table.name), transaction: nil)
      try set(state, of: number, in: book)
    }
  }
}
