import Synchronization

/// The events of a round, line by line, for the analysis of a failure.
final class Chronicle: Sendable {
  private let start = ContinuousClock.now
  private let lines = Mutex<[String]>([])

  /// Time since the round was set up.
  var elapsed: Duration { ContinuousClock.now - start }

  /// Adds a line with the time.
  func append(_ who: String, _ what: String) {
    let milliseconds = String(Int(elapsed / .milliseconds(1)))
    let padding = String(repeating: " ", count: max(0, 8 - milliseconds.count))
    lines.withLock { $0.append("\(padding)\(milliseconds) ms  \(who): \(what)") }
  }

  var text: String { lines.withLock { $0.joined(separator: "\n") + "\n" } }
}
