import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("The bound of a list of pages", .hangLimit)
struct ListBoundTests {
  private static let large = ListBound.smallPageBytes

  /// Returns the fault of a list and the number of pages, `limit` at most.
  private func run(
    _ bound: ListBound = ListBound(), limit: Int = 200_000,
    _ page: (SequenceNumber) -> (place: SequenceNumber, head: SequenceNumber, bytes: Int)
  ) -> (fault: ListBound.Fault?, pages: Int) {
    var bound = bound
    bound.begin(at: -1)
    for number in 0..<limit {
      let page = page(SequenceNumber(number))
      if let fault = bound.accept(reached: page.place, head: page.head, bytes: page.bytes) {
        return (fault, number + 1)
      }
    }
    return (nil, limit)
  }

  @Test("a page that stays at its place, goes back or passes the head ends the list")
  func progress() {
    for (place, head) in [(5, 9), (4, 9), (10, 9), (-1, 9)] as [(SequenceNumber, SequenceNumber)] {
      var bound = ListBound()
      bound.begin(at: 5)
      #expect(
        bound.accept(reached: place, head: head, bytes: 1)
          == .noProgress(from: 5, to: place, head: head))
    }
    var first = ListBound()
    first.begin(at: -1)
    #expect(first.accept(reached: 0, head: 9, bytes: 1) == nil)
  }

  @Test("small pages without end are bounded, whatever head they name")
  func small() {
    let result = run { (place: $0, head: Limits.sequenceMax, bytes: 300) }
    #expect(result.pages == ListBound.smallPagesMax + 1)
    #expect(result.fault == .endless(pages: result.pages))
  }

  @Test("large pages without end are bounded")
  func large() {
    let result = run { (place: $0, head: Limits.sequenceMax, bytes: Self.large) }
    #expect(result.fault == .endless(pages: ListBound.pagesMax + 1))
  }

  @Test("a head that runs ahead of the list is followed for a bounded number of pages")
  func movingHead() {
    let result = run { (place: $0, head: $0 + 1, bytes: Self.large) }
    #expect(result.fault != nil)
    #expect(result.pages <= 2 * ListBound.headsMax + 2)
  }

  @Test("a full list of the largest space ends by itself, while others write half as fast")
  func honest() {
    // 100,000,000 records in pages of 5,000; the head moves by 2,500 meanwhile.
    var bound = ListBound()
    bound.begin(at: -1)
    var (place, head): (SequenceNumber, SequenceNumber) = (0, 100_000_000)
    while place < head {
      place = min(place + 5_000, head)
      #expect(bound.accept(reached: place, head: head, bytes: Self.large) == nil)
      if place < head { head += 2_500 }
    }
  }

  @Test("a list that begins again has no new allowance")
  func again() {
    var bound = ListBound()
    var pages = 0
    var fault: ListBound.Fault?
    while fault == nil, pages < 10_000 {
      bound.begin(at: 0)
      pages += 1
      fault = bound.accept(reached: 1, head: 9, bytes: 1)
    }
    #expect(fault == .endless(pages: ListBound.smallPagesMax + 1))
  }
}
