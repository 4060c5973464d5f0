import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The division of a history into pages of whole transactions.
@Suite(.hangLimit)
struct FeedCutTests {
  /// Returns operations of transactions with these lengths, from place 1 on, of ten characters each.
  private static func rows(_ lengths: [Int]) -> [FeedCut.Row] {
    var place: Int64 = 0
    return lengths.flatMap { length in
      (0..<length).map { ordinal in
        place += 1
        return FeedCut.Row(sequence: place, ordinal: Int64(ordinal), characters: 10)
      }
    }
  }

  @Test(
    "a page ends with the last whole transaction, and divides one larger than the page",
    arguments: [
      ([], 5, 100, 0, false), ([1], 5, 100, 1, false), ([2, 3], 5, 100, 5, false),
      ([2, 3, 1], 5, 100, 5, false), ([2, 4], 5, 100, 2, false), ([6], 5, 100, 5, true),
      ([6, 1], 5, 100, 5, true), ([1, 1, 1, 1, 1, 1], 5, 100, 5, false),
      // The characters end the page; the first operation is always in it.
      ([1, 1, 1], 5, 20, 2, false), ([3, 1], 5, 25, 2, true), ([1, 2], 5, 25, 1, false),
      ([1, 1], 5, 1, 1, false),
    ] as [([Int], Int, Int, Int, Bool)])
  func cut(lengths: [Int], limit: Int, characters: Int, count: Int, isWithin: Bool) {
    let cut = FeedCut(
      Array(Self.rows(lengths).prefix(limit + 1)), limit: limit, characters: characters)
    #expect(cut.count == count)
    #expect(cut.isWithinTransaction == isWithin)
  }

  @Test("the rest of a divided transaction ends with it")
  func rest() {
    let rest = Array(Self.rows([6, 2]).dropFirst(5))
    let cut = FeedCut(rest, limit: 2, characters: 100)
    #expect(cut.count == 1 && !cut.isWithinTransaction)
  }
}
