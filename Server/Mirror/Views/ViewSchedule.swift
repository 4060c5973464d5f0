/// The decision when the copy of a view is compared with the view; pure.
struct ViewSchedule: Sendable, Equatable {
  /// The pause between two looks at the statistics.
  static let lookPause = Duration.seconds(2)
  /// The longest time between two comparisons: no statistics show changes of a foreign table, or of a
  /// function's result.
  static let restMax = Duration.seconds(300)
  /// A comparison takes this share of the time, at most.
  static let shareMax = 10

  private var state: String?
  private var begun: ContinuousClock.Instant?
  private var duration = Duration.zero

  init() {}

  /// Returns `true` if a comparison is due.
  ///
  /// - Parameter state: changes with the tables below the view.
  func isDue(_ state: String, at now: ContinuousClock.Instant) -> Bool {
    guard let begun else { return true }
    let age = now - begun
    if age < duration * Self.shareMax { return false }
    return state != self.state || age >= Self.restMax
  }

  /// Records a comparison. The state was read before: a write in between is compared again.
  mutating func record(
    _ state: String, from begun: ContinuousClock.Instant, to ended: ContinuousClock.Instant
  ) {
    (self.state, self.begun, duration) = (state, begun, ended - begun)
  }
}
