import FerryProtocol
import FerrySQLite
import FerryTestSupport
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
      #expect(try RecordPredicate(text, key: "THE KEY") == predicate, "\(text)")
    }
  }

  @Test(
    "a predicate that is encoded is read back unchanged", arguments: 1...8 as ClosedRange<UInt64>)
  func encoding(seed: UInt64) throws {
    var samples = PredicateSamples(seed: seed)
    for _ in 0..<2_000 {
      let predicate = samples.predicate()
      #expect(try RecordPredicate.read(predicate.written) == predicate)
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
        let found = try connection.prepare(
          "SELECT k FROM \"a \"\"table\" WHERE \(sql.text) ORDER BY rowid"
        ).rows(SQLiteList(sql.values)) { $0.name(0) }
        #expect(found == expected, "\(predicate.text(key: "k"))")
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
      try insert.run(samples.identifier(), SQLiteList(samples.row()))
    }
    return try connection.prepare("SELECT * FROM \"a \"\"table\" ORDER BY rowid").rows { row in
      let columns = PredicateSamples.columns.enumerated().map { index, name in
        Column(name, row.value(Int32(index) + 1))
      }
      return (Name(row.text(0)), columns)
    }
  }
}
