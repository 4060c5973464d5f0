import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// A watching device's knowledge of the server's head.
@Suite(.hangLimit)
struct LiveHeadTests {
  /// Returns a connected state at a head, with everything pulled.
  static func trusted(_ head: SequenceNumber, epoch: UInt64? = nil) -> LiveHead {
    var live = LiveHead()
    live.connect(head: head)
    if let epoch { live.move(to: HeadEvent(head: head, epoch: Epoch(epoch))) }
    live.trust(live.history)
    return live
  }

  @Test("a new connection is trusted once everything was pulled")
  func connects() {
    var live = LiveHead()
    #expect(live.head == nil && live.trusted == nil)
    live.connect(head: 5)
    #expect(live.head == 5 && live.trusted == nil)
    live.trust(live.history)
    #expect(live.trusted == 5)
    live.move(to: HeadEvent(head: 7))
    #expect(live.trusted == 7, "a higher head of the same history")
    live.disconnect()
    #expect(live.head == nil && live.trusted == nil)
    live.connect(head: 7)
    #expect(live.trusted == nil, "the server may be another one")
  }

  @Test("a lower head is accepted, and leads to a pull")
  func goesBack() {
    var live = Self.trusted(302)
    let before = live.history
    live.move(to: HeadEvent(head: 2))
    #expect(live.head == 2 && live.trusted == nil)
    live.trust(before)
    #expect(live.trusted == nil, "a pull that began before does not count")
    live.move(to: HeadEvent(head: 3))
    #expect(live.head == 3, "what is written after that is heard")
    live.trust(live.history)
    #expect(live.trusted == 3)
  }

  @Test("any head of another epoch leads to a pull")
  func otherEpoch() {
    for head in [SequenceNumber(4), 5, 6] {
      var live = Self.trusted(5, epoch: 1)
      #expect(live.trusted == 5)
      live.move(to: HeadEvent(head: head, epoch: Epoch(2)))
      #expect(live.head == head && live.trusted == nil)
    }
  }

  @Test("an event is read in the server's format, and others are ignored")
  func reads() {
    let data = "{\"epoch\":\"0000000000000007\",\"head\":\"42\"}"
    #expect(
      HeadEvent(ServerSentEvent(id: "42", event: "head", data: data))
        == HeadEvent(head: 42, epoch: Epoch(7)))
    #expect(
      HeadEvent(ServerSentEvent(id: "42", event: "head", data: "nothing")) == HeadEvent(head: 42))
    for id in ["", "x", "-1", "99999999999999999999"] {
      #expect(HeadEvent(ServerSentEvent(id: id, event: "head", data: data)) == nil, "\(id)")
    }
  }
}
