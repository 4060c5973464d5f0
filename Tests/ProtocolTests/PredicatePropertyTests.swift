import FerryProtocol
import SQLite
import TestSupport
import Testing

@Suite("Random predicates", .hangLimit)
struct PredicatePropertyTests {
  @Test(
    "a predicate that is printed is read back unchanged", arguments: 1...8 as ClosedRange<UInt64>)
  func printing(seed: UInt64) throws {
    var samples = PredicateSamples(seed: seed)
    for _ in 0..<2_000 {
      let predicate = samples.predicate()
      let text = predicate.text(key: "the key")
      #expect(try Predicate(text, key: "THE KEY") == predicate, "\(text)")
    }
  }

  @Test(
    "a predicate that is encoded is read back unchanged", arguments: 1...8 as ClosedRange<UInt64>)
  func encoding(seed: UInt64) throws {
    var samples = PredicateSamples(seed: seed)
    for _ in 0..<2_000 {
      let predicate = samples.predicate()
      #expect(try Predicate.read(predicate.written) == predicate)
    }
  }

  /// Compares with SQLite. The table's columns have every affinity and a collation, which must not
  /// matter.
  @Test("SQLite finds the same rows in a table of any affinity and collation")
  func sameAsSQLite() throws {
    let connection = try SQLiteConnection(path: ":memory:")
    try connection.execute(
      """
      CREATE TABLE "a ""table"(k TEXT PRIMARY KEY COLLATE NOCASE, a TEXT COLLATE NOCASE, b INTEGER,
        "C d" REAL, "é" NUMERIC COLLATE RTRIM, "or")
      """)
    for seed in 1...40 as ClosedRange<UInt64> {
      var samples = PredicateSamples(seed: seed)
      let rows = try fill(connection, &samples)
      for _ in 0..<100 {
        let predicate = samples.predicate()
        let expected = rows.filter {
          predicate.matches(record: $0.record, columns: $0.columns)
        }.map(\.record)
        let sql = predicate.sql(table: "a \"table", key: "k")
        let find = try connection.prepare(
          "SELECT k FROM \"a \"\"table\" WHERE \(sql.text) ORDER BY rowid")
        for (index, value) in sql.values.enumerated() { bind(find, Int32(index) + 1, value) }
        #expect(try find.map { Name($0.text(0)) } == expected, "\(predicate.text(key: "k"))")
      }
    }
  }

  /// Fills the table. Returns the rows as the table has them: their affinity has changed some
  /// values.
  private func fill(
    _ connection: SQLiteConnection, _ samples: inout PredicateSamples
  ) throws -> [(record: Name, columns: [Column])] {
    try connection.execute("DELETE FROM \"a \"\"table\"")
    let insert = try connection.prepare(
      "INSERT OR IGNORE INTO \"a \"\"table\" VALUES (?, ?, ?, ?, ?, ?)")
    for _ in 0..<20 {
      insert.bind(1, samples.identifier())
      for (index, value) in samples.row().enumerated() { bind(insert, Int32(index) + 2, value) }
      try insert.run()
      insert.reset()
    }
    return try connection.prepare("SELECT * FROM \"a \"\"table\" ORDER BY rowid").map { row in
      let columns = PredicateSamples.columns.enumerated().map { index, name in
        Column(name, value(row, Int32(index) + 1))
      }
      return (Name(row.text(0)), columns)
    }
  }

  private func bind(_ statement: SQLiteStatement, _ index: Int32, _ value: Value) {
    switch value {
    case .null: statement.bindNull(index)
    case .integer(let integer): statement.bind(index, integer)
    case .real(let real): statement.bind(index, real)
    case .text(let text): statement.bind(index, text)
    case .blob(let blob): statement.bind(index, blob: blob)
    }
  }

  private func value(_ row: SQLiteStatement, _ index: Int32) -> Value {
    switch row.type(index) {
    case .null: .null
    case .integer: .integer(row.int64(index))
    case .real: .real(row.double(index))
    case .text: .text(row.text(index))
    case .blob: .blob(row.blob(index))
    }
  }
}
