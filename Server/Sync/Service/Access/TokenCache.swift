/// Answers of the store about tokens, kept for a few seconds; pure.
///
/// A revoked token is let in until its entry expires, on this process at most `timeToLive` long.
struct TokenCache: Sendable {
  /// How long a known token is believed.
  static let timeToLive = Duration.seconds(5)
  /// How long an unknown one is turned away unasked.
  static let unknownTimeToLive = Duration.seconds(2)

  private struct Entry {
    var token: StoredToken?
    var expiry: Duration
  }

  private var entries: [[UInt8]: Entry] = [:]
  private let countMax: Int

  /// - Parameter countMax: Entries at most; past it, all are forgotten.
  init(countMax: Int = 10_000) { self.countMax = countMax }

  /// Entries kept, expired ones too.
  var count: Int { entries.count }

  /// `nil` when nothing is known; `.some(nil)` when the token is known not to exist.
  func lookUp(_ hash: [UInt8], now: Duration) -> StoredToken?? {
    guard let entry = entries[hash], now < entry.expiry else { return nil }
    return .some(entry.token)
  }

  mutating func keep(_ token: StoredToken?, for hash: [UInt8], now: Duration) {
    if entries.count >= countMax {
      entries = entries.filter { now < $0.value.expiry }
      if entries.count >= countMax { entries = [:] }
    }
    let life = token == nil ? Self.unknownTimeToLive : Self.timeToLive
    entries[hash] = Entry(token: token, expiry: now + life)
  }
}
