/// The patience of a round with a reader of the log that is behind; pure. It lasts as long as the
/// reader advances.
struct LogPatience: Sendable, Equatable {
  /// The longest wait without an advance.
  static let limit = Duration.seconds(20)
  /// The time after which a round applies the writes captured so far.
  static let slice = Duration.seconds(1)

  private var idle = Duration.zero
  /// True from a failure to the next stored part: PostgreSQL sends the same messages again.
  private var isRepeating = false

  /// Begins a wait.
  mutating func begin() { idle = .zero }

  /// Records a received message, or a report of a later end of the log.
  mutating func receive() {
    if !isRepeating { idle = .zero }
  }

  /// Records a stored part of the log.
  mutating func store() { (idle, isRepeating) = (.zero, false) }

  /// Records the end of a connection.
  mutating func fail() { isRepeating = true }

  /// Records the end of a slice of the wait. Returns `false` if the wait is over.
  mutating func waits(after slice: Duration) -> Bool {
    idle += slice
    return idle < Self.limit
  }
}
