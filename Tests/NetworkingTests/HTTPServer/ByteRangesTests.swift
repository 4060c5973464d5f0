import FerryPlatform
import FerryTestSupport
import Testing

@Suite("Byte ranges", .hangLimit)
struct ByteRangesTests {
  @Test(
    "well-formed headers select the bytes that they name",
    arguments: [
      ("bytes=0-0", [0..<1]), ("bytes=0-499", [0..<500]), ("bytes=500-", [500..<1000]),
      ("bytes=999-", [999..<1000]), ("bytes=-1", [999..<1000]), ("bytes=-500", [500..<1000]),
      ("bytes=0-5000", [0..<1000]), ("bytes=-5000", [0..<1000]), ("BYTES=1-2", [1..<3]),
      ("bytes=0-99999999999999999999999", [0..<1000]),
      ("bytes=-99999999999999999999999", [0..<1000]),
      ("bytes=0-9,500-509", [0..<10, 500..<510]), ("bytes=,0-9 ,\t500-509,", [0..<10, 500..<510]),
      // In the order of the request, without the absent ones.
      ("bytes=-10,0-9,2000-3000", [990..<1000, 0..<10]),
    ])
  func satisfiable(header: String, ranges: [Range<Int>]) {
    #expect(ByteRanges(header: header)?.resolved(size: 1000) == .ranges(ranges))
  }

  @Test(
    "malformed headers and other units are ignored",
    arguments: [
      "", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=a-b", "bytes=5", "bytes=5-4",
      "bytes=0-9,9-8", "bytes=1-2-3", "bytes=--5", "bytes=+1-2", "bytes=0x1-2", "bytes=1 - 2",
      "bytes 0-9", "bytes =0-9", "bytes= 0-9;5-6", "lines=0-9", "bytes=0-1, bytes=2-3",
      "bytes=٣-٤",
    ])
  func ignored(header: String) {
    #expect(ByteRanges(header: header) == nil)
  }

  @Test(
    "ranges without a byte in them are unsatisfiable",
    arguments: [
      "bytes=1000-", "bytes=1000-1001", "bytes=-0", "bytes=5000-6000,-0",
      "bytes=99999999999999999999999-",
    ])
  func unsatisfiable(header: String) {
    #expect(ByteRanges(header: header)?.resolved(size: 1000) == .unsatisfiable)
  }

  @Test("only a suffix of an empty file is satisfiable")
  func empty() {
    #expect(ByteRanges(header: "bytes=0-")?.resolved(size: 0) == .unsatisfiable)
    #expect(ByteRanges(header: "bytes=-0")?.resolved(size: 0) == .unsatisfiable)
    #expect(ByteRanges(header: "bytes=-5")?.resolved(size: 0) == .whole)
  }

  @Test(
    "ranges that overlap or nearly touch are sent once",
    arguments: [
      ("bytes=0-99,50-149", [0..<150]), ("bytes=0-99,100-199", [0..<200]),
      ("bytes=100-199,0-99", [0..<200]), ("bytes=0-999,5-6,-1", [0..<1000]),
      ("bytes=0-9,89-99", [0..<100]), ("bytes=0-9,90-99", [0..<10, 90..<100]),
      // The joined range is at the place of the first part of it in the request.
      ("bytes=900-,0-9,400-409,5-20", [900..<1000, 0..<21, 400..<410]),
    ])
  func coalesced(header: String, ranges: [Range<Int>]) {
    #expect(ByteRanges(header: header)?.resolved(size: 1000) == .ranges(ranges))
  }

  @Test("the number of ranges is bounded, and overlaps do not multiply the bytes")
  func bounded() throws {
    func header(_ count: Int) -> String {
      "bytes=" + (0..<count).map { "\($0 * 1000)-\($0 * 1000)" }.joined(separator: ",")
    }
    let most = try #require(ByteRanges(header: header(ByteRanges.countMax)))
    guard case .ranges(let ranges) = most.resolved(size: 1 << 20) else {
      Issue.record("the most ranges that may be are refused")
      return
    }
    #expect(ranges.count == ByteRanges.countMax)
    #expect(ByteRanges(header: header(ByteRanges.countMax + 1)) == nil)
    let overlapping = "bytes=" + [String](repeating: "0-", count: 64).joined(separator: ",")
    #expect(ByteRanges(header: overlapping)?.resolved(size: 7) == .ranges([0..<7]))
  }
}
