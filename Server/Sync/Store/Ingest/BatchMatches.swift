import FerryProtocol
import Synchronization

/// The matches of batch operations, found before the transaction with those operations.
package struct BatchMatches: Sendable, Equatable {
  struct Found: Sendable, Equatable {
    /// With the bytes of their states.
    var keys: [RecordKey: Int]
    var fault: BatchMatcher.Fault?
  }

  /// The origin of the matches: later changes need another look. `nil` without matches.
  package private(set) var origin: HistoryOrigin?
  var found: [OperationID: Found] = [:]

  package init(since origin: HistoryOrigin? = nil) { self.origin = origin }

  /// The matching records, each once for every batch that matches it.
  var count: Int { found.values.reduce(0) { $0 + $1.keys.count } }

  /// Returns the matches that still count in the space as it is now.
  ///
  /// - Parameter place: The place of the newest operation in ``origin`` within the space's history.
  func kept(in space: SpaceState, place: HistoryPlace?) -> BatchMatches {
    origin?.leads(to: space, place: place) == true ? self : BatchMatches()
  }

  /// Adds the matches of another round.
  package mutating func merge(_ other: BatchMatches) {
    if let first = origin, let second = other.origin {
      origin = first.head <= second.head ? first : second
    } else {
      origin = origin ?? other.origin
    }
    found.merge(other.found) { _, new in new }
  }
}

/// A place in a history, read outside of a transaction. A store that lost commits meanwhile has
/// another history behind the same number.
package struct HistoryOrigin: Sendable, Equatable {
  package let head: SequenceNumber
  /// The operation at ``head``; `nil` in an empty space.
  package let newest: OperationID?
  package let historyHash: UInt64

  package init(_ space: SpaceState) {
    (head, newest, historyHash) = (space.head, space.newest, space.historyHash)
  }

  /// Returns whether the history of `space` goes on from here.
  ///
  /// - Parameter place: The present place of ``newest`` in the history of `space`.
  func leads(to space: SpaceState, place: HistoryPlace?) -> Bool {
    if head == 0 || self == HistoryOrigin(space) { return true }
    return place?.sequence == head && place?.historyHash == historyHash && head <= space.head
  }
}

/// An error: a transaction cannot go on before the matches of all batches are found, outside of it.
package struct BatchesToMatch: Error {
  package let matcher: BatchMatcher
  /// The space as the transaction saw it.
  package let origin: HistoryOrigin
  /// The earlier matches, as far as they still count.
  package let kept: BatchMatches
}

/// A matcher for slices that run one after the other.
package final class SharedMatcher: Sendable {
  private let matcher: Mutex<BatchMatcher>

  package init(_ matcher: BatchMatcher) { self.matcher = Mutex(matcher) }

  package var isDone: Bool { matcher.withLock { $0.step == .done } }

  /// Works on one slice.
  package func slice(_ body: (inout BatchMatcher) throws -> Void) rethrows {
    try matcher.withLock { matcher in
      matcher.beginSlice()
      try body(&matcher)
    }
  }

  package func matches(since origin: HistoryOrigin) -> BatchMatches {
    matcher.withLock { $0.matches(since: origin) }
  }
}

/// The end of a store's attempt to apply packets.
package enum IngestAttempt: Sendable {
  case done(before: SequenceNumber, IngestBatch)
  case needsMatches(BatchesToMatch)
}

extension IngestContext {
  /// Leaves out missing matches.
  package mutating func dropAbsentMatches() {
    matches = matches.mapValues { keys in
      keys.filter { records[$0] != nil || recordBytes[$0] != nil }
    }
  }
}
