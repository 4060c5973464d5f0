import FerryProtocol
import Synchronization

/// In which spaces this run of the server has begun a timeline, and how far it has seen their
/// histories come since.
///
/// It begins one in each space that it writes to, with the first operation; and another one where a
/// space's head is behind what it has seen: the database was set back beneath it.
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
      return Timeline(random())
    }
  }

  /// Notes a space as it is after a transaction that has been committed.
  package func note(_ state: SpaceState, of space: Int64) {
    heads.withLock { heads in
      if state.timelineStart != nil {
        heads[space] = state.head
      } else if let seen = heads[space] {
        heads[space] = max(seen, state.head)
      }
    }
  }
}
