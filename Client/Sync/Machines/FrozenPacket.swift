import FerryProtocol

/// A packet as it was frozen, with the server's report on it (SPEC.md §4).
struct FrozenPacket: Sendable, Equatable {
  enum State: String, Sendable {
    /// It is to be sent.
    case frozen
    /// The server keeps it until the packets before it arrive.
    case buffered
    /// The server has applied it, or knew it already.
    case acknowledged
  }

  /// Its place in the order of the packets of this file.
  let number: Int64
  var dependency: OperationID?
  let tail: OperationID
  /// The places of its operations in the queue.
  let orders: ClosedRange<Int64>
  let isMerged: Bool
  /// Whether the next packet continues its transaction.
  let continues: Bool
  /// The number of its operations.
  let operations: Int
  /// The version of the space's schema by which its operations were merged.
  let schema: Int64

  var state = State.frozen
  /// The first place of its operations in the history, where the receipt named it.
  var first: SequenceNumber?
  /// The last place, or a head at which the packet was in the history.
  var last: SequenceNumber?
  /// Whether nothing of it was overruled, so that the replica equals the server after it.
  var isClean = false
  /// Whether a page, or a receipt with a history hash past the cursor, shows that it is in the server's
  /// chain of this device. Any other receipt is only the server's word.
  var isInChain = false
  /// The history hash before it and after it, and the timeline, as its receipt named them.
  var hashBefore: UInt64?
  var hashAfter: UInt64?
  var timeline: Timeline?

  /// Whether a change of another device has come for a record of it.
  var hasMet = false

  /// Forgets everything that the server reported: the packet is to be sent again, unchanged.
  mutating func reopen() {
    state = .frozen
    forgetPlaces()
    last = nil
    (isClean, isInChain) = (false, false)
  }

  /// Forgets its places, because the history in which it had them is lost. Until the cursor has
  /// passed ``last``, its operations shield the user's values.
  mutating func forgetPlaces() {
    first = nil
    (hashBefore, hashAfter, timeline) = (nil, nil, nil)
  }
}
