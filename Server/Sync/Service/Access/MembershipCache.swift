import FerryProtocol

/// The roles of users as members, believed for a few seconds; pure.
struct MembershipCache: Sendable {
  private struct Entry {
    var roles: [SpaceName: Role]
    var expiry: Duration
  }

  private var entries: [UserID: Entry] = [:]
  /// Users and roles kept.
  private var count = 0
  private let countMax: Int
  /// Counts ``forget(_:)``: a look-up that began before it is not stored.
  private(set) var generation = 0

  /// - Parameter countMax: Users and roles together; past it, all are forgotten.
  init(countMax: Int = 100_000) { self.countMax = countMax }

  /// Returns the roles of a user; `nil` if they are to be looked up.
  func lookUp(_ user: UserID, now: Duration) -> [SpaceName: Role]? {
    entries[user].flatMap { now < $0.expiry ? $0.roles : nil }
  }

  /// - Parameter generation: The value before the look-up.
  mutating func store(
    _ roles: [SpaceName: Role], of user: UserID, now: Duration, in generation: Int
  ) {
    guard generation == self.generation else { return }
    remove(user)
    if count + roles.count >= countMax { (entries, count) = ([:], 0) }
    entries[user] = Entry(roles: roles, expiry: now + IdentityCache.timeToLive)
    count += 1 + roles.count
  }

  mutating func forget(_ user: UserID) {
    remove(user)
    generation += 1
  }

  private mutating func remove(_ user: UserID) {
    guard let entry = entries.removeValue(forKey: user) else { return }
    count -= 1 + entry.roles.count
  }
}
