/// A cache of results of credentials, by the credential's hash; pure.
///
/// A revoked token is admitted until its entry expires, on this process at most `timeToLive` long.
/// Good and bad credentials have separate tables. So strangers with bad ones push no good one out,
/// and no result takes longer than others.
struct IdentityCache: Sendable {
  /// The time for which a known token is believed.
  static let timeToLive = Duration.seconds(5)
  /// The time for which an unknown one is refused without a look-up.
  static let unknownTimeToLive = Duration.seconds(2)

  private struct Entry {
    var identity: Identity
    var expiry: Duration
  }

  /// Good credentials: those stored since the last turn, and those of the turn before.
  private var good: [[UInt8]: Entry] = [:]
  private var older: [[UInt8]: Entry] = [:]
  /// The ends of bad ones.
  private var bad: [[UInt8]: Duration] = [:]
  private let countMax: Int

  /// - Parameter countMax: Good credentials of a turn, and bad ones. Past it, good ones of the turn
  ///   before are forgotten, or all bad ones.
  init(countMax: Int = 10_000) { self.countMax = countMax }

  /// Entries kept, expired ones too.
  var count: Int { good.count + older.count + bad.count }

  /// Returns the identity of a credential: `nil` if nothing is known, `.some(nil)` if the
  /// credential is known as invalid.
  func lookUp(_ hash: [UInt8], now: Duration) -> Identity?? {
    if let entry = good[hash] ?? older[hash] {
      return now < entry.expiry ? .some(entry.identity) : nil
    }
    guard let expiry = bad[hash], now < expiry else { return nil }
    return .some(nil)
  }

  /// Returns whether the credential was good when it was last looked up.
  func wasKnown(_ hash: [UInt8]) -> Bool { good[hash] != nil || older[hash] != nil }

  mutating func store(
    _ identity: Identity?, for hash: [UInt8], now: Duration,
    timeToLive: Duration = IdentityCache.timeToLive
  ) {
    good[hash] = nil
    older[hash] = nil
    guard let identity else {
      if bad.count >= countMax { bad = [:] }
      bad[hash] = now + Self.unknownTimeToLive
      return
    }
    bad[hash] = nil
    if good.count >= countMax { (older, good) = (good, [:]) }
    good[hash] = Entry(identity: identity, expiry: now + timeToLive)
  }

  /// Forgets the results of all checks. Good credentials stay known as good, so guesses from the
  /// same address do not lock them out.
  mutating func forgetAll() {
    bad = [:]
    for table in [\Self.good, \Self.older] {
      self[keyPath: table] = self[keyPath: table].mapValues {
        Entry(identity: $0.identity, expiry: .zero)
      }
    }
  }
}
