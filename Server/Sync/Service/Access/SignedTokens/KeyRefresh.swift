/// When an issuer's keys are fetched again; pure. Times are on the uptime clock.
struct KeyRefresh: Sendable, Equatable {
  /// The shortest time between two attempts, however many unknown keys tokens name.
  static let intervalMin = Duration.seconds(30)
  /// The age at which keys are fetched again without a reason.
  static let ageMax = Duration.seconds(300)

  private(set) var attemptedAt: Duration?
  private(set) var succeededAt: Duration?

  /// Returns `true` if keys are fetched for a token with an unknown key.
  func isAllowed(now: Duration) -> Bool {
    attemptedAt.map { now - $0 >= Self.intervalMin } ?? true
  }

  /// Returns whether keys are fetched because they are old.
  func isDue(now: Duration) -> Bool {
    isAllowed(now: now) && (succeededAt.map { now - $0 >= Self.ageMax } ?? true)
  }

  mutating func attempt(now: Duration) { attemptedAt = now }

  mutating func succeed(now: Duration) { succeededAt = now }
}
