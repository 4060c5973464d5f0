import FerryTestSupport
import Testing

@testable import FerrySQLite

@Suite("The word REPLACE in SQL", .hangLimit)
struct ReplaceWordTests {
  @Test(
    "the word of a conflict clause is found, and the function of that name is not",
    arguments: [
      ("INSERT OR REPLACE INTO t VALUES (1)", true), ("replace into t values (1)", true),
      ("SELECT replace(a, 'x', 'y')", false), ("SELECT REPLACE \n (a, 'x', 'y')", false),
      ("UNIQUE ON CONFLICT Replace)", true), ("SELECT replaced, my_replace FROM t", false),
      ("REPLACE", true), ("", false),
    ])
  func word(_ sql: String, _ isFound: Bool) {
    #expect(ReplaceWord.isIn(sql.utf8) == isFound)
  }
}
