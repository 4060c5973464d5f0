import FerryProtocol
import FerryTestSupport
import Testing

@Suite("A part's place", .hangLimit)
struct ContentRangeTests {
  @Test("a place is read with the total size, and without it if the sender does not know it")
  func wellFormed() throws {
    let range = try #require(ContentRange("bytes 10-19/100"))
    #expect(range.bytes == 10..<20)
    #expect(range.total == 100)
    #expect(ContentRange("Bytes 0-0/1")?.bytes == 0..<1)
    #expect(ContentRange("bytes 0-9/*")?.total == nil)
    #expect(ContentRange("bytes */100")?.total == 100)
    #expect(ContentRange("bytes */100")?.bytes == nil)
  }

  @Test(
    "no place is read from anything else",
    arguments: [
      "", "bytes", "10-19/100", "items 0-9/100", "bytes 0-9", "bytes 9-0/100", "bytes 0-100/100",
      "bytes -9/100", "bytes 0-/100", "bytes +0-9/100", "bytes 0-9/+100", "bytes */*",
      "bytes 0-9/100/100", "bytes 0-9,20-29/100", "bytes 0-9/100, bytes 0-9/100",
      "bytes 0-9999999999999999999/*", "bytes=0-9/100",
    ])
  func malformed(_ field: String) {
    #expect(ContentRange(field) == nil)
  }
}
