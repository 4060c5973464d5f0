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

  /// The packet's place in the order of the packets of this file.
  let number: Int64
  var dependency: OperationID?
  let tail: OperationID
  /// The places of the operations in the queue.
  let orders: ClosedRange<Int64>
  let isMerged: Bool
  /// True if the next packet continues the transaction.
  let continues: Bool
  /// The number of operations.
  let operations: Int
  /// The version of the space's schema at the merge of the operations.
  let schema: Int64

  var state = State.frozen
  /// The first place of the operations in the history, if the receipt named it.
  var first: SequenceNumber?
  /// The last place, or the place of a head with the packet in the history.
  var last: SequenceNumber?
  /// True if nothing of the packet was overruled: the replica equals the server after it.
  var isClean = false
  /// True if a page, or a receipt with a history hash past the cursor, shows the packet in the
  /// server's chain of this device. Any other receipt is only the server's word.
  var isInChain = false
  /// The history hash before and after the packet, and the timeline, as named by the receipt.
  var hashBefore: UInt64?
  var hashAfter: UInt64?
  var timeline: Timeline?

  /// True if a change of another device has come for a record of it.
  var hasMet = false

  /// Forgets everything reported by the server: the packet is to be sent again, unchanged.
  mutating func reopen() {
    state = .frozen
    forgetPlaces()
    last = nil
    (isClean, isInChain) = (false, false)
  }

  /// Forgets the packet's places, because the history with these places is lost. Until the cursor
  /// has passed ``last``, the packet's operations shield the user's values.
  mutating func forgetPlaces() {
    first = nil
    (hashBefore, hashAfter, timeline) = (nil, nil, nil)
  }
}
