import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Parts of a table's statement", .hangLimit)
struct TableSQLTests {
  @Test(
    "the foreign keys that are deferred are found in the order of the statement",
    arguments: [
      ("CREATE TABLE t(a)", []),
      (
        "CREATE TABLE t(a REFERENCES p, b REFERENCES p deferrable initially deferred)",
        [false, true]
      ),
      ("CREATE TABLE t(a REFERENCES p NOT DEFERRABLE INITIALLY DEFERRED)", [false]),
      ("CREATE TABLE t(a REFERENCES p DEFERRABLE INITIALLY IMMEDIATE)", [false]),
      ("CREATE TABLE t(a REFERENCES p DEFERRABLE)", [false]),
      ("CREATE TABLE t(a, FOREIGN KEY(a) REFERENCES p(\"DEFERRABLE\"))", [false]),
      (
        "CREATE TABLE t(a REFERENCES [p q] /* x */ DEFERRABLE -- y\n INITIALLY/**/DEFERRED, b)",
        [true]
      ),
      ("CREATE TABLE t(a DEFAULT 'REFERENCES ''p''' REFERENCES `p``` MATCH x)", [false]),
    ] as [(String, [Bool])])
  func deferred(sql: String, expected: [Bool]) {
    #expect(TableSQL(sql).deferred == expected)
  }

  @Test("keywords count, and names in quotation marks, texts and comments do not")
  func keywords() {
    let sql =
      "CREATE TABLE t(\"check\", [CHECK], `check`, checked DEFAULT 'CHECK' /* CHECK */ -- CHECK"
    #expect(!TableSQL(sql).has("CHECK"))
    #expect(TableSQL(sql + "\n, b check(b > 0))").has("CHECK"))
    #expect(!TableSQL("CREATE TABLE t(a /* unclosed").has("CHECK"))
  }
}
