import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("Retention", .hangLimit)
struct RetentionTests {
  static let hour: Int64 = 3_600_000

  static func state(
    head: SequenceNumber, retentionHorizon: SequenceNumber = 0, newest: HeadTime? = nil,
    oldEnough: HeadTime? = nil
  ) -> HorizonState {
    HorizonState(
      head: head, retentionHorizon: retentionHorizon, newest: newest, oldEnough: oldEnough)
  }

  @Test(
    "marks are a tenth of the retention apart, but at most an hour",
    arguments: [(1_000, 100), (86_400_000, 3_600_000), (nil, 3_600_000), (0, 0)]
      as [(Int64?, Int64)])
  func intervals(milliseconds: Int64?, interval: Int64) {
    #expect(Retention(milliseconds: milliseconds).markInterval == interval)
  }

  @Test("a mark is due when the head has moved and the interval has passed")
  func marks() {
    let request = HorizonRequest(now: 10 * Self.hour, keeping: .standard)
    #expect(Self.state(head: 0).dueMark(request) == nil)
    #expect(Self.state(head: 3).dueMark(request) == HeadTime(sequence: 3, at: 10 * Self.hour))
    let (fresh, old) = (
      HeadTime(sequence: 3, at: 9 * Self.hour + 1), HeadTime(sequence: 3, at: 9 * Self.hour)
    )
    #expect(Self.state(head: 5, newest: fresh).dueMark(request) == nil)
    #expect(Self.state(head: 3, newest: old).dueMark(request) == nil)
    #expect(
      Self.state(head: 5, newest: old).dueMark(request)
        == HeadTime(sequence: 5, at: 10 * Self.hour))
  }

  @Test("marks never go back in time, so a clock that goes back keeps history longer")
  func clockSetBack() {
    let newest = HeadTime(sequence: 3, at: 10 * Self.hour)
    let request = HorizonRequest(now: 5 * Self.hour, keeping: Retention(milliseconds: 0))
    #expect(Self.state(head: 9, newest: newest).dueMark(request) == nil)
  }

  @Test("the retention horizon rises to the newest old mark, or to the head without retention")
  func horizons() {
    let request = HorizonRequest(now: 10 * Self.hour, keeping: Retention(milliseconds: Self.hour))
    let mark = HeadTime(sequence: 7, at: 9 * Self.hour)
    func expect(_ state: HorizonState, _ request: HorizonRequest, _ horizon: Int64, _ at: Int64?) {
      let raised = RaisedHorizon(retentionHorizon: horizon, head: 9, at: at)
      #expect(state.raised(request) == raised)
    }
    expect(Self.state(head: 9, oldEnough: mark), request, 7, mark.at)
    expect(Self.state(head: 9, retentionHorizon: 8, oldEnough: mark), request, 8, mark.at)
    expect(Self.state(head: 9), request, 0, nil)
    let all = HorizonRequest(now: 10 * Self.hour, keeping: Retention(milliseconds: 0))
    expect(Self.state(head: 9), all, 9, 10 * Self.hour)
    #expect(HorizonRequest(now: 5, keeping: .forever).cutoff == .min)
  }
}
