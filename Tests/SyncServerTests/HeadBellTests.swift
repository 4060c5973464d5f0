import FerryProtocol
import Testing

@testable import FerrySyncServer

/// The notifications of one node to the others.
@Suite("The bell of heads")
struct HeadBellTests {
  @Test("moves that come during a notification go together with the next, of each space the last")
  func joins() {
    var bell = PostgresHeads.Bell()
    func add(_ head: SequenceNumber, to space: Int64) -> Bool {
      bell.add(HeadMove(space: space, head: head))
    }
    func next() -> [HeadMove]? { bell.next() }
    #expect(next() == nil)
    #expect(add(1, to: 2))
    #expect(next() == [HeadMove(space: 2, head: 1)])
    #expect(!add(3, to: 2), "a notification is under way")
    #expect(!add(7, to: 1))
    #expect(!add(2, to: 2), "told later than the newer one")
    #expect(next() == [HeadMove(space: 1, head: 7), HeadMove(space: 2, head: 3)])
    #expect(next() == nil)
    #expect(add(4, to: 2), "the notifying was over")
  }
}
