import FerryConformance
import FerryProtocol
import FerryTestSupport
import Testing

/// The oracle of operations rejected by servers, and of other files' copies of them.
@Suite(.hangLimit)
struct QuarantineApartTests {
  @Test("a refused operation must be either in the quarantine or in the history")
  func quarantine() {
    var maker = HistoryMaker()
    maker.add(.insert, "a", by: 1, at: 10, ["name": "hall"], table: "places")
    let refused = maker.operation(.insert, "b", at: 20, ["name": "hall"], table: "places")
    var replica = maker.replica(1, [])
    let committed = RunEvent.committed(device: "one", [refused])
    func found(_ maker: HistoryMaker, _ replica: ReplicaEvidence) -> (apart: Int, lost: Int) {
      let events = [committed, .read(device: "one", replica)]
      let confirmed = RunEvent.confirmed(device: "one", [refused.id])
      let final = maker.final(["one": replica])
      return (
        QuarantineApart.found(QuarantineApart(), events, final).count,
        AcknowledgedOperations.found(AcknowledgedOperations(), events + [confirmed], final).count
      )
    }
    #expect(found(maker, replica) == (0, 1))
    replica.quarantined = [refused.id]
    #expect(found(maker, replica) == (0, 0))
    maker.take(refused, by: 1)
    #expect(found(maker, replica) == (1, 0))
  }
}
