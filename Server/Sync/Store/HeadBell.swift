import FerryProtocol

/// The moves to report to other nodes; pure.
///
/// One notification is under way at a time. Moves that come meanwhile go together with the next
/// one, of each space the last.
///
/// ```swift
/// var bell = HeadBell()
/// bell.add(HeadMove(space: 1, head: 7))  // true: the caller notifies until `next()` is nil
/// bell.add(HeadMove(space: 1, head: 8))  // false
/// bell.next()                            // [HeadMove(space: 1, head: 8)]
/// bell.next()                            // nil
/// ```
struct HeadBell {
  private var waiting: [Int64: SequenceNumber] = [:]
  /// True if a notification is under way, or begins.
  private(set) var isRinging = false

  /// Adds a move. Returns whether the caller has to notify, since nobody does.
  mutating func add(_ move: HeadMove) -> Bool {
    waiting[move.space] = max(move.head, waiting[move.space] ?? 0)
    defer { isRinging = true }
    return !isRinging
  }

  /// Returns the moves of the next notification, by space; `nil` if there are none. Then the
  /// notifying is over.
  mutating func next() -> [HeadMove]? {
    guard !waiting.isEmpty else {
      isRinging = false
      return nil
    }
    defer { waiting = [:] }
    return waiting.sorted { $0.key < $1.key }.map { HeadMove(space: $0.key, head: $0.value) }
  }
}
