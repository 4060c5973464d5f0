import FerryProtocol
import Synchronization

/// The spaces in which this run of the server has begun a timeline, with the newest known head of
/// each.
///
/// It begins a timeline in each space with the first operation written. It begins another one if a
/// space's head is behind the newest known head: the database was restored from a backup. After a
/// lost answer of the database, it may begin one more: this costs a row and nothing else.
package final class OwnTimelines: Sendable {
  private let heads = Mutex<[Int64: SequenceNumber]>([:])
  private let random: @Sendable () -> UInt64
  private let onBegin: @Sendable (Int64) -> Void

  /// - Parameters:
  ///   - random: The source of names of timelines.
  ///   - onBegin: Called when a timeline has begun in a space: the moves of other runs there are
  ///     needed from now on.
  package init(
    random: @escaping @Sendable () -> UInt64 = { .random(in: 0 ... .max) },
    onBegin: @escaping @Sendable (Int64) -> Void = { _ in }
  ) {
    (self.random, self.onBegin) = (random, onBegin)
  }

  /// Returns the timeline to begin with the next operation of a space; `nil` if the present one
  /// goes on.
  package func next(in space: Int64, head: SequenceNumber) -> Timeline? {
    heads.withLock { heads in
      if let seen = heads[space], seen <= head { return nil }
      heads[space] = nil
      return Timeline(random())
    }
  }

  /// Records a space after a committed transaction.
  package func update(_ state: SpaceState, of space: Int64) {
    let begins = heads.withLock { heads in
      let seen = heads[space]
      guard seen != nil || state.timelineStart != nil else { return false }
      heads[space] = max(seen ?? 0, state.head)
      return seen == nil
    }
    if begins { onBegin(space) }
  }

  /// Records a move reported by another run.
  package func update(_ move: HeadMove) {
    heads.withLock { heads in
      if let seen = heads[move.space] { heads[move.space] = max(seen, move.head) }
    }
  }
}
