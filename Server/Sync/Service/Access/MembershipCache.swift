import FerryProtocol

/// The roles of users as members, believed for a few seconds; pure.
struct MembershipCache: Sendable {
  private struct Entry {
    var roles: [SpaceName: Role]
    var expiry: Duration
  }

  private var entries: [UserID: Entry] = [:]
  private let countMax: Int
  /// Counts ``forgetAll()``: a look-up that began before it is not stored.
  private(set) var generation = 0

  /// - Parameter countMax: Users; past it, all are forgotten.
  init(countMax: Int = 10_000) { self.countMax = countMax }

  /// Returns the roles of a user; `nil` if they are to be looked up.
  func lookUp(_ user: UserID, now: Duration) -> [SpaceName: Role]? {
    entries[user].flatMap { now < $0.expiry ? $0.roles : nil }
  }

  /// - Parameter generation: The value before the look-up.
  mutating func store(
    _ roles: [SpaceName: Role], of user: UserID, now: Duration, in generation: Int
  ) {
    guard generation == self.generation else { return }
    if entries.count >= countMax { entries = [:] }
    entries[user] = Entry(roles: roles, expiry: now + IdentityCache.timeToLive)
  }

  mutating func forgetAll() {
    entries = [:]
    generation += 1
  }
}
