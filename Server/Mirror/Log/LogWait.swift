import Dispatch
import Synchronization

/// The patience of a round with a reader of the log that is behind; pure. It lasts as long as the
/// reader advances.
struct LogPatience: Sendable, Equatable {
  /// The longest wait without an advance.
  static let limit = Duration.seconds(20)

  private var advances: Int
  private var idle = Duration.zero

  /// - Parameter advances: the number of the reader's advances so far.
  init(at advances: Int) { self.advances = advances }

  /// Records the end of a slice of the wait. Returns `false` if the wait is over.
  mutating func waits(after slice: Duration, at advances: Int) -> Bool {
    idle = advances == self.advances ? idle + slice : .zero
    self.advances = advances
    return idle < Self.limit
  }
}

/// A wait for the reader of the log.
final class LogWait: Sendable {
  /// The time after which a round applies the writes captured so far.
  static let slice = Duration.seconds(1)

  private let semaphore = DispatchSemaphore(value: 0)
  private let patience: Mutex<LogPatience>

  init(at advances: Int) { patience = Mutex(LogPatience(at: advances)) }

  func end() { semaphore.signal() }

  /// Returns `true` if the wait ends in time. It blocks.
  func ends(within limit: Duration) -> Bool {
    semaphore.wait(timeout: .now() + .nanoseconds(Int(limit / .nanoseconds(1)))) == .success
  }

  /// Returns `false` if the reader has not advanced for too long.
  func goesOn(at advances: Int) -> Bool {
    patience.withLock { $0.waits(after: Self.slice, at: advances) }
  }
}
