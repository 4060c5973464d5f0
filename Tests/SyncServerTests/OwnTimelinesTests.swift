import FerryProtocol
import Synchronization
import Testing

@testable import FerrySyncServer

/// The moments at which a run of a server begins a timeline.
@Suite("Timelines of a run")
struct OwnTimelinesTests {
  private let drawn = Counter()

  private final class Counter: Sendable {
    private let count = Atomic<UInt64>(0)
    func next() -> UInt64 { count.add(1, ordering: .relaxed).newValue }
  }

  /// Runs one transaction that adds operations; returns their timeline.
  private func write(
    _ count: Int, over state: inout SpaceState, of space: Int64 = 1, _ own: OwnTimelines,
    commits: Bool = true
  ) {
    var next = state
    next.nextTimeline = own.next(in: space, head: state.head)
    for index in 0..<count {
      _ = next.place(OperationID(UniqueID(high: 1, low: UInt64(index))), at: .zero, base: 0)
    }
    guard commits else { return }
    own.update(next, of: space)
    state = SpaceState(epoch: next.epoch, head: next.head, timeline: next.timeline)
  }

  @Test("a timeline begins in each space with the first operation, and continues")
  func begins() {
    let own = OwnTimelines { [drawn] in drawn.next() }
    var (one, two) = (SpaceState(epoch: Epoch(1), head: 5), SpaceState(epoch: Epoch(2)))
    write(0, over: &one, own)
    #expect(one.timeline == nil, "nothing was added")
    write(2, over: &one, own, commits: false)
    #expect(one.timeline == nil)
    write(2, over: &one, own)
    let first = one.timeline
    #expect(first != nil)
    write(1, over: &two, of: 2, own)
    #expect(two.timeline != nil && two.timeline != first)
    write(3, over: &one, own)
    #expect(one.timeline == first && one.head == 10)
  }

  @Test("a timeline begins at the place before its first operation")
  func start() {
    var state = SpaceState(epoch: Epoch(1), head: 5)
    state.nextTimeline = Timeline(9)
    #expect(state.timelineStart == nil)
    for _ in 0..<2 {
      _ = state.place(OperationID(UniqueID(high: 1, low: 1)), at: .zero, base: 0)
    }
    #expect(state.timelineStart == 5 && state.timeline == Timeline(9) && state.head == 7)
    #expect(state.nextTimeline == nil)
  }

  @Test("a new timeline begins if the database was rolled back during the run")
  func setBack() {
    let own = OwnTimelines { [drawn] in drawn.next() }
    var state = SpaceState(epoch: Epoch(1))
    write(4, over: &state, own)
    let (copy, first) = (state, state.timeline)
    // Another node's operations are seen as well.
    state.head += 3
    write(0, over: &state, own)
    state = copy
    write(1, over: &state, own)
    #expect(state.timeline != first)
    let second = state.timeline
    write(1, over: &state, own)
    #expect(state.timeline == second, "behind where it had been, and on its way")
  }

  @Test("the moves of a space are asked for when its timeline has begun, and not before")
  func asks() {
    let asked = Mutex([Int64]())
    let own = OwnTimelines(
      random: { [drawn] in drawn.next() },
      onBegin: { space in
        asked.withLock { $0.append(space) }
      })
    var (one, two) = (SpaceState(epoch: Epoch(1), head: 5), SpaceState(epoch: Epoch(2)))
    write(0, over: &one, own)
    write(2, over: &one, own, commits: false)
    #expect(asked.withLock { $0 } == [], "nothing was committed")
    for _ in 0..<3 { write(1, over: &one, own) }
    write(1, over: &two, of: 2, own)
    #expect(asked.withLock { $0 } == [1, 2])
  }

  @Test("heads of other nodes count as seen, and late ones lower nothing")
  func told() {
    let own = OwnTimelines { [drawn] in drawn.next() }
    own.update(HeadMove(space: 1, head: 50))
    #expect(own.next(in: 1, head: 50) != nil, "nothing was written to it yet")
    var state = SpaceState(epoch: Epoch(1), head: 50)
    write(1, over: &state, own)
    let (copy, first) = (state, state.timeline)
    own.update(HeadMove(space: 1, head: 90))
    own.update(HeadMove(space: 1, head: 60))
    state.head = 80
    write(1, over: &state, own)
    #expect(state.timeline != first, "set back to 80")
    own.update(copy, of: 1)
    #expect(own.next(in: 1, head: 80) != nil && own.next(in: 1, head: 81) != nil)
  }
}
