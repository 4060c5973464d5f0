/// Measures a rate over the last seconds. It has no clock: the caller passes the time.
struct RateMeter: Sendable {
  private struct Mark {
    var at: Duration
    var amount: Int64
  }

  /// The time window of the measured rate.
  private static let window: Duration = .seconds(5)
  /// The least time for a rate.
  private static let windowMin: Duration = .milliseconds(500)

  private var marks: [Mark] = []

  /// Stores the amount each tenth of a second at most, and removes marks outside of the window.
  mutating func mark(_ amount: Int64, at now: Duration) {
    if let last = marks.last, now - last.at < .milliseconds(100) { return }
    marks.append(Mark(at: now, amount: amount))
    while marks.count > 2, now - marks[1].at >= Self.window { marks.removeFirst() }
  }

  /// Returns the amount a second; `nil` while it is unknown.
  func rate(_ amount: Int64, at now: Duration) -> Double? {
    guard let first = marks.first, now - first.at >= Self.windowMin else { return nil }
    return Double(amount - first.amount) / ((now - first.at) / .seconds(1))
  }
}
