import FerryCommandLine
import FerryTestSupport
import Foundation
import Testing

@Suite("JSON text", .hangLimit)
struct JSONTextTests {
  @Test(
    "values are written on one line, in order, without spaces",
    arguments: [
      (.null, "null"), (.bool(true), "true"), (.int(9_007_199_254_740_993), "9007199254740993"),
      (.int(Int64.min), "-9223372036854775808"), (.double(0.1), "0.1"), (.double(1e300), "1e+300"),
      (.double(.nan), "null"), (.double(-.infinity), "null"), (.string(""), #""""#),
      (.string("a\"b\\c/\n\r\t"), #""a\"b\\c/\n\r\t""#),
      (.string("\u{0}\u{1B}[31m"), #""\u0000\u001b[31m""#),
      (.string("\u{7F}\u{9B}\u{2028}\u{202E}"), #""\u007f\u009b\u2028\u202e""#),
      (.string("Zürich 東京 🚢"), #""Zürich 東京 🚢""#), (.array([]), "[]"), (.object([]), "{}"),
      (.array([.int(1), .null, .array([.bool(false)])]), "[1,null,[false]]"),
      (.object([("z", .int(1)), ("a", .string(orNull: nil))]), #"{"z":1,"a":null}"#),
      (.object([("\n", .int(orNull: 2))]), #"{"\n":2}"#),
    ] as [(JSONText, String)])
  func encodes(value: JSONText, text: String) {
    #expect(value.text == text)
  }

  @Test("another decoder reads back every written scalar")
  func roundTrip() throws {
    let scalars =
      (0...0x2FF).compactMap { Unicode.Scalar($0 as Int) } + ["\u{2029}", "\u{FFFF}", "😀"]
    let original = String(String.UnicodeScalarView(scalars))
    let data = Data(JSONText.array([.string(original)]).text.utf8)
    let decoded = try JSONDecoder().decode([String].self, from: data)
    #expect(decoded.first?.unicodeScalars.elementsEqual(original.unicodeScalars) == true)
  }

  @Test("an Int needs no conversion, and order counts in comparisons")
  func equality() {
    let count = 3
    #expect(JSONText.int(count) == .int(Int64(3)))
    #expect(
      JSONText.object([("a", .null), ("b", .null)]) != .object([("b", .null), ("a", .null)]))
  }
}
