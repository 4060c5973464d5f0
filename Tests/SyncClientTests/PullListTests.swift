import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The pages of a pull list: heads in, faults out (SPEC.md §5, §22).
@Suite("The order of a list's pages", .hangLimit)
struct PullListTests {
  private static let epoch = Epoch(7)

  private static func head(
    _ head: SequenceNumber, received: SequenceNumber, more: Bool = true,
    applied: SequenceNumber? = nil, epoch: Epoch = epoch, of cursorEpoch: Epoch? = nil
  ) -> PageHead {
    PageHead(
      epoch: epoch, head: head,
      cursor: Cursor(
        epoch: cursorEpoch ?? epoch, applied: applied ?? (more ? 5 : received), received: received),
      more: more, appliedTail: nil, serverTime: 0, count: 1)
  }

  private static func faults(_ heads: [PageHead]) -> [Bool] {
    var list = PullList(from: Cursor(epoch: epoch, applied: 5, received: 8))
    return heads.map { list.add($0) != nil }
  }

  @Test("a list goes on to its head, which may move meanwhile")
  func honest() {
    #expect(
      Self.faults([
        Self.head(20, received: 9), Self.head(25, received: 20),
        Self.head(26, received: 26, more: false),
      ]) == [false, false, false])
    #expect(Self.faults([Self.head(8, received: 8, more: false)]) == [false])
    #expect(Self.faults([Self.head(7, received: 7, more: false)]) == [false], "rolled back")
    var first = PullList(from: nil)
    #expect(first.add(Self.head(0, received: 0, more: false)) == nil)
  }

  @Test(
    "a page that repeats, goes back, passes the head, ends elsewhere or is of another epoch is a fault",
    arguments: [
      head(20, received: 8), head(20, received: 7), head(20, received: 21),
      head(20, received: 19, more: false), head(20, received: 20, more: false, applied: 19),
      head(20, received: 9, epoch: Epoch(8)),
      head(20, received: 9, of: Epoch(8)),
      head(20, received: 20, more: false, epoch: Epoch(8)),
    ])
  func faulty(head: PageHead) {
    #expect(Self.faults([head]) == [true])
  }
}
