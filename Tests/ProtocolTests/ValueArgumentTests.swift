import FerryProtocol
import FerryTestSupport
import Testing

@Suite("Values on a command line", .hangLimit)
struct ValueArgumentTests {
  @Test(
    "numbers, null, text and blobs are read as in SQL; any other argument is literal text",
    arguments: [
      ("1", 1), ("-1", -1), ("+7", 7), ("007", 7), ("9223372036854775807", .integer(.max)),
      ("-9223372036854775808", .integer(.min)), ("9223372036854775808", "9223372036854775808"),
      ("1.5", 1.5), ("-.5", -0.5), ("1e3", 1000.0), ("-9e999", .real(-.infinity)), ("null", .null),
      ("NULL", .null), ("'null'", "null"), ("'it''s'", "it's"), ("x'00ff'", .blob([0, 255])),
      ("it's", "it's"), ("2026-10-01", "2026-10-01"), ("", ""), ("a b", "a b"), ("1 2", "1 2"),
      ("-", "-"), ("-null", "-null"), ("\"quoted\"", "\"quoted\""), ("x'0'", "x'0'"),
    ] as [(String, Value)])
  func reading(argument: String, value: Value) {
    #expect(Value(argument: argument) == value)
  }
}
