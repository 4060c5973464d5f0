import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryMissions

@Suite("Mission queue", .hangLimit)
struct MissionQueueTests {
  private let a = mission("a")
  private let b = mission("b")
  private let c = mission("c")

  private func entry(
    _ id: MissionID, _ asked: Int64, priority: Int64 = 0, after: [MissionID] = [],
    state: MissionState = .ready
  ) -> MissionQueue.Entry {
    MissionQueue.Entry(id: id, priority: priority, asked: asked, after: after, state: state)
  }

  private func started(_ effects: [MissionQueue.Effect]) -> [MissionID] {
    effects.compactMap { if case .start(let id) = $0 { id } else { nil } }
  }

  private func changes(_ effects: [MissionQueue.Effect]) -> [String] {
    effects.compactMap { effect in
      guard case .changed(let id, let state, let reason) = effect else { return nil }
      return "\(id) \(state.rawValue)" + (reason.map { " \($0.kind.rawValue)" } ?? "")
    }
  }

  @Test("missions run one after another, by priority and then in the order of requests")
  func order() {
    var queue = MissionQueue()
    #expect(
      started(queue.handle(.asked([entry(a, 1), entry(b, 2), entry(c, 3, priority: 1)]))) == [c])
    #expect(started(queue.handle(.ended(c, .done))) == [a])
    #expect(queue[b]?.state == .ready)
    #expect(started(queue.handle(.ended(a, .done))) == [b])
    #expect(changes(queue.handle(.ended(b, .done))) == ["b done"])
    #expect(queue.isIdle)
  }

  @Test("the number of parallel missions is bounded")
  func limit() {
    var queue = MissionQueue(limit: 2)
    #expect(started(queue.handle(.asked([entry(a, 1), entry(b, 2), entry(c, 3)]))) == [a, b])
  }

  @Test("a mission waits for its predecessors, even if its priority is higher")
  func dependencies() {
    var queue = MissionQueue()
    let effects = queue.handle(.asked([entry(a, 1, priority: 9, after: [b]), entry(b, 2)]))
    #expect(started(effects) == [b])
    #expect(changes(effects).contains("a ready waiting"))
    let then = queue.handle(.ended(b, .done))
    #expect(started(then) == [a])
    #expect(changes(then) == ["b done", "a downloading"])
  }

  @Test("a mission that is stored here delays no other")
  func alreadyHere() {
    var queue = MissionQueue()
    _ = queue.handle(.alreadyComplete(b))
    #expect(started(queue.handle(.asked([entry(a, 1, after: [b])]))) == [a])
  }

  @Test("a failure fails all missions that depend on it")
  func failedDependency() {
    var queue = MissionQueue()
    _ = queue.handle(.asked([entry(a, 1, after: [b]), entry(b, 2, after: [c]), entry(c, 3)]))
    let effects = queue.handle(.ended(c, .failed(MissionError(.wrongContent, item: "x", "bad"))))
    #expect(
      changes(effects) == ["c failed wrongContent", "b failed dependency", "a failed dependency"])
    #expect(queue[a]?.reason?.message.contains("mission b") == true)
  }

  @Test("a paused mission delays its followers, and a cancelled one fails them")
  func restingDependency() {
    var queue = MissionQueue()
    _ = queue.handle(.asked([entry(a, 1, after: [b]), entry(b, 2)]))
    #expect(queue.handle(.pause(b)).contains(.stop(b)))
    _ = queue.handle(.ended(b, .stopped))
    #expect(queue[a]?.state == .ready)
    #expect(changes(queue.handle(.cancel(b))) == ["b cancelled cancelled", "a failed dependency"])
  }

  @Test("missions in a circle fail, and so do those that wait for an unrequested one")
  func unreachable() {
    var queue = MissionQueue()
    let circle = queue.handle(.asked([entry(a, 1, after: [b]), entry(b, 2, after: [a])]))
    #expect(started(circle).isEmpty)
    #expect(queue[a]?.state == .failed && queue[b]?.state == .failed)
    _ = queue.handle(.asked([entry(c, 3, after: [mission("d")])]))
    #expect(queue[c]?.reason?.kind == .dependency)
  }

  @Test("a paused mission leaves its place when it has stopped, and returns on resume")
  func pause() {
    var queue = MissionQueue()
    _ = queue.handle(.asked([entry(a, 1), entry(b, 2)]))
    let paused = queue.handle(.pause(a))
    #expect(paused.contains(.stop(a)) && changes(paused) == ["a paused"])
    #expect(started(paused).isEmpty)
    #expect(started(queue.handle(.ended(a, .stopped))) == [b])
    #expect(queue[a]?.state == .paused)
    #expect(changes(queue.handle(.resume(a))) == ["a ready"])
    #expect(started(queue.handle(.ended(b, .done))) == [a])
  }

  @Test("a mission that is resumed before it has stopped starts again afterwards")
  func quickResume() {
    var queue = MissionQueue()
    _ = queue.handle(.asked([entry(a, 1)]))
    _ = queue.handle(.pause(a))
    #expect(started(queue.handle(.resume(a))).isEmpty)
    #expect(started(queue.handle(.ended(a, .stopped))) == [a])
  }

  @Test("a mission that was complete when it was stopped is done")
  func doneMeanwhile() {
    var queue = MissionQueue()
    _ = queue.handle(.asked([entry(a, 1)]))
    _ = queue.handle(.cancel(a))
    #expect(changes(queue.handle(.ended(a, .done))) == ["a done"])
  }

  @Test("a full disk pauses a mission with the reason, and the next one runs")
  func diskFull() {
    var queue = MissionQueue()
    _ = queue.handle(.asked([entry(a, 1), entry(b, 2)]))
    let effects = queue.handle(.ended(a, .rests(MissionError(.diskFull, "full"))))
    #expect(changes(effects) == ["a paused diskFull", "b downloading"])
  }

  @Test("a mission without a connection reports it and delays no other")
  func stalled() {
    var queue = MissionQueue()
    _ = queue.handle(.asked([entry(a, 1), entry(b, 2)]))
    let effects = queue.handle(.stalled(a, MissionError(.offline, "no network")))
    #expect(changes(effects) == ["a downloading offline", "b downloading"])
    #expect(started(effects) == [b])
    #expect(changes(queue.handle(.goesOn(a))) == ["a downloading"])
  }

  @Test("after a restart paused missions stay paused, and running ones start again")
  func restored() {
    var queue = MissionQueue()
    let effects = queue.handle(
      .asked([entry(a, 1, state: .paused), entry(b, 2, state: .downloading)]))
    #expect(changes(effects) == ["a paused", "b ready", "b downloading"])
    #expect(started(effects) == [b])
  }

  @Test("a new request restarts a finished mission, and does not change a running one")
  func askedAgain() {
    var queue = MissionQueue()
    _ = queue.handle(.asked([entry(a, 1)]))
    #expect(queue.handle(.asked([entry(a, 1)])).isEmpty)
    _ = queue.handle(.ended(a, .failed(MissionError(.refused, "403"))))
    #expect(started(queue.handle(.asked([entry(a, 2)]))) == [a])
    _ = queue.handle(.ended(a, .done))
    #expect(started(queue.handle(.asked([entry(a, 3)]))) == [a])
  }

  @Test("a removed mission is forgotten, and a new follower of it fails")
  func removed() {
    var queue = MissionQueue()
    _ = queue.handle(.alreadyComplete(b))
    _ = queue.handle(.removed(b))
    _ = queue.handle(.asked([entry(a, 1, after: [b])]))
    #expect(queue[a]?.state == .failed)
  }
}
