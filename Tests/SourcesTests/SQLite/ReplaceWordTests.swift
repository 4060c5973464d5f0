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
      ("UPDATE t SET a = 'please replace it'", false), ("UPDATE t SET a = 1 -- replace", false),
      ("UPDATE \"replace\" SET [replace] = `replace` /* replace */", false),
      ("UPDATE t SET a = 'it''s' /* ' */ ; REPLACE INTO t VALUES (1)", true),
      ("SELECT 1 -- '\nUNION REPLACE INTO", true), ("SELECT 'replace", false),
    ])
  func word(_ sql: String, _ isFound: Bool) {
    #expect(ReplaceWord.isIn(sql.utf8) == isFound)
  }
}
