import FerryCompression
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Pages decoded while earlier changes are applied.
@Suite("Feeds of pages", .hangLimit)
struct PageFeedTests {
  private let maker = PageMaker()
  private let limits = Limits.standard

  /// A page of so many records, with some hundred bytes each.
  private func page(_ count: Int) -> [UInt8] {
    let text = String(repeating: "x", count: 300)
    return maker.page(
      (1...count).map {
        maker.change(SequenceNumber($0), "t", "r\($0)", [Column("a", .text(text))])
      }
    ).body
  }

  private func sequences(_ feed: PageFeed) throws -> [SequenceNumber] {
    var found: [SequenceNumber] = []
    _ = try feed.open()
    while let batch = try feed.next() {
      #expect(batch.count <= 2_000, "a few changes are in memory, however small the page is stored")
      found += try batch.map { try $0.get().sequence }
    }
    #expect(try feed.next() == nil, "the end can be asked for again")
    return found
  }

  @Test("a feed gives all changes of a page in order", arguments: [3, 5_000])
  func order(count: Int) throws {
    let body = page(count)
    let expected = (1...count).map { SequenceNumber($0) }
    #expect(try sequences(PageFeed(.plain(body), limits: limits)) == expected)
    let compressed = try ContentCoding.zstd.compress(body, level: 1)
    #expect(try sequences(PageFeed(.compressed(compressed), limits: limits)) == expected)
    #expect(try PageFeed(.plain(body), limits: limits).open().head == SequenceNumber(count))
  }

  @Test("a page that is malformed at its end fails", arguments: [3, 5_000])
  func malformed(count: Int) {
    #expect(throws: MalformedMessage.self) {
      try sequences(PageFeed(.plain(Array(page(count).dropLast())), limits: limits))
    }
  }

  /// The system has fewer threads for such work: endless decodings would hold them all.
  @Test("feeds that are dropped half-way end their decoding")
  func dropped() throws {
    let body = page(5_000)
    for _ in 0..<300 {
      let feed = try PageFeed(.plain(body), limits: limits)
      _ = try feed.open()
    }
    #expect(try sequences(PageFeed(.plain(body), limits: limits)).count == 5_000)
  }
}
