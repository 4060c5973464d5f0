import FerryTestSupport
import Testing

@testable import FerryCommandLine

@Suite("Lists that others choose", .hangLimit)
struct BoundedListTests {
  @Test("names above the bound are counted")
  func names() {
    #expect(BoundedList.names(["a", "b"]) == "a, b")
    #expect(BoundedList.names([String]()) == "")
    #expect(
      BoundedList.names((1...200_000).map { "\($0)" })
        == "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 199,990 more")
  }

  @Test("entries above the bound share one line")
  func lines() {
    func lines(_ count: Int) -> [String] {
      BoundedList.lines(0..<count, shown: 2) {
        "entry \($0)"
      } rest: {
        "\($0) more"
      }
    }
    #expect(lines(0).isEmpty)
    #expect(lines(2) == ["entry 0", "entry 1"])
    #expect(lines(5) == ["entry 0", "entry 1", "3 more"])
  }
}
