/// A cache of results of credentials, by the credential's hash; pure.
///
/// A revoked token is let in until its entry expires, on this process at most `timeToLive` long.
struct IdentityCache: Sendable {
  /// How long a known token is believed.
  static let timeToLive = Duration.seconds(5)
  /// How long an unknown one is refused without a look-up.
  static let unknownTimeToLive = Duration.seconds(2)

  private struct Entry {
    var identity: Identity?
    var expiry: Duration
  }

  private var entries: [[UInt8]: Entry] = [:]
  private let countMax: Int

  /// - Parameter countMax: Entries at most; past it, all are forgotten.
  init(countMax: Int = 10_000) { self.countMax = countMax }

  /// Entries kept, expired ones too.
  var count: Int { entries.count }

  /// Returns the identity of a credential: `nil` if nothing is known, `.some(nil)` if the
  /// credential is known as invalid.
  func lookUp(_ hash: [UInt8], now: Duration) -> Identity?? {
    guard let entry = entries[hash], now < entry.expiry else { return nil }
    return .some(entry.identity)
  }

  /// Returns whether the credential was good when it was last looked up.
  func wasKnown(_ hash: [UInt8]) -> Bool { entries[hash]?.identity != nil }

  mutating func keep(
    _ identity: Identity?, for hash: [UInt8], now: Duration,
    timeToLive: Duration = IdentityCache.timeToLive
  ) {
    if entries.count >= countMax {
      entries = entries.filter { $0.value.identity != nil }
      if entries.count >= countMax { entries = entries.filter { now < $0.value.expiry } }
      if entries.count >= countMax { entries = [:] }
    }
    let life = identity == nil ? Self.unknownTimeToLive : timeToLive
    entries[hash] = Entry(identity: identity, expiry: now + life)
  }

  /// Forgets the results of all checks. Good credentials stay known as good, so that guesses from
  /// the same address do not lock them out.
  mutating func forgetAll() {
    entries = entries.compactMapValues { entry in
      entry.identity.map { Entry(identity: $0, expiry: .zero) }
    }
  }
}
