import Testing

@testable import FerryHTTPServer

/// `GET / HTTP/1.1`, `Host: t` and an empty line, at 1000: 16, 9 and 2 bytes.
@Suite("Layout of a request's head")
struct HeadLayoutTests {
  struct Case: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var line: UInt = 1000
    var name: UInt = 1016
    var value: UInt = 1022
    var valueCount = 1
    var bytes = 27
    var isWhole = false
  }

  static let cases = [
    Case(testDescription: "all bytes", isWhole: true),
    Case(testDescription: "no blank before the value", value: 1021, bytes: 26, isWhole: true),
    Case(testDescription: "an empty value", valueCount: 0, bytes: 26, isWhole: true),
    Case(testDescription: "bytes behind a NUL of the value", bytes: 30),
    Case(testDescription: "a line that ends with LF alone", bytes: 26),
    Case(testDescription: "a value elsewhere, before the name", value: 900),
    Case(testDescription: "a value within the name", value: 1020, bytes: 25),
    Case(testDescription: "a value at the end of all addresses", value: .max),
    Case(testDescription: "a version before the line", line: 1010),
    Case(testDescription: "no size", bytes: 0),
  ]

  @Test("a head is whole if the parts fill it", arguments: cases)
  func fills(row: Case) {
    var layout = HeadLayout(line: row.line, version: 1006, versionCount: 8)
    layout.append(name: row.name, nameCount: 4, value: row.value, valueCount: row.valueCount)
    #expect(layout.fills(row.bytes) == row.isWhole)
  }
}
