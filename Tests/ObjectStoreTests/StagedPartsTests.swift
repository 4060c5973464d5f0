import FerryTestSupport
import Testing

@testable import FerryObjectStore

@Suite("Parts of an upload in a bucket", .hangLimit)
struct StagedPartsTests {
  private func parts(_ sizes: (end: Int64, size: Int64)...) -> StagedParts {
    var parts = StagedParts()
    for part in sizes { parts.add(part.end, size: part.size) }
    return parts
  }

  @Test("parts reach as far as there is no gap")
  func reached() {
    #expect(parts().reached == 0)
    #expect(parts((4, 4)).reached == 4)
    #expect(parts((4, 4), (8, 4), (9, 1)).reached == 9)
    #expect(parts((8, 4), (9, 1)).reached == 0)
    #expect(parts((4, 4), (9, 1)).reached == 4)
    // Two clients cut one content in different places.
    #expect(parts((4, 4), (8, 4), (3, 3), (6, 3), (11, 2)).reached == 8)
  }

  @Test("parts of several cuts make up the whole without a gap or an overlap")
  func chain() {
    let cut = parts((4, 4), (8, 4), (3, 3), (6, 3), (9, 3))
    #expect(cut.chain(to: 9) == [3, 6, 9])
    #expect(cut.chain(to: 8) == [4, 8])
    #expect(cut.chain(to: 0) == [])
    #expect(cut.chain(to: 7) == nil)
    #expect(parts((4, 4), (9, 1)).chain(to: 9) == nil)
  }

  @Test("sizes that cannot be are left out", arguments: [0, -1, 5, Int64.max, .min])
  func hostile(size: Int64) {
    #expect(parts((4, size)) == StagedParts())
  }
}
