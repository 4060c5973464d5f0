import FerryTestSupport
import Testing

@testable import FerryMissionServer

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
    #expect(parts((4, 4), (8, 4), (9, 1)).ends(after: 4) == [8, 9])
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

  @Test("no listed part is larger than a request")
  func huge() {
    #expect(parts((1 << 40, 1 << 40)) == StagedParts())
    #expect(parts((8 << 20, 8 << 20)).reached == 8 << 20)
  }

  @Test(
    "the quota counts an owner's parts, the present upload as a whole, and more for many tiny parts"
  )
  func use() {
    var use = StagedUse()
    use.add(400, isOwn: false)
    use.add(300, isOwn: true)
    #expect(!use.exceeds(1_000, total: 600) && use.exceeds(1_000, total: 601))
    // More than the declared whole is here, by other cuts of it.
    use.add(400, isOwn: true)
    #expect(use.exceeds(1_000, total: 600))
    #expect(use.exceeds(.max, total: .max))
    for _ in 0..<StagedUse.freeParts { use.add(1, isOwn: false) }
    #expect(use.others == 400 + 997 + 3 * StagedUse.partBytes)
  }
}
