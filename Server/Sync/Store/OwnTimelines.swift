import FerryProtocol
import Synchronization

/// In which spaces this run of the server has begun a timeline, and how far it has seen their
/// histories come since.
///
/// It begins one in each space that it writes to, with the first operation; and another one where a
/// space's head is behind what it has seen: the database was set back beneath it. It may begin one
/// more than that, where an answer of the database was lost: that costs a row and nothing else.
package final class OwnTimelines: Sendable {
  private let heads = Mutex<[Int64: SequenceNumber]>([:])
  private let random: @Sendable () -> UInt64

  /// - Parameter random: Where the names of timelines come from.
  package init(random: @escaping @Sendable () -> UInt64 = { .random(in: 0 ... .max) }) {
    self.random = random
  }

  /// The timeline that is to begin with the next operation of a space; `nil` where the one goes on
  /// that is there.
  package func next(in space: Int64, head: SequenceNumber) -> Timeline? {
    heads.withLock { heads in
      if let seen = heads[space], seen <= head { return nil }
      heads[space] = nil
      return Timeline(random())
    }
  }

  /// Notes a space as it is after a transaction that has been committed.
  package func note(_ state: SpaceState, of space: Int64) {
    heads.withLock { heads in
      guard heads[space] != nil || state.timelineStart != nil else { return }
      heads[space] = max(heads[space] ?? 0, state.head)
    }
  }

  /// Notes what another run has told of.
  package func note(_ move: HeadMove) {
    heads.withLock { heads in
      if let seen = heads[move.space] { heads[move.space] = max(seen, move.head) }
    }
  }
}
