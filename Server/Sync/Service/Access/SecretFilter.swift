/// A filter of existing secrets: the first 64 bits of their hashes at the last read; pure.
///
/// It distinguishes a member's token from guesses from the same address, without a look-up in the
/// store for each.
struct SecretFilter: Sendable {
  /// The time for which a new secret may count as a guess.
  static let ageMax = Duration.seconds(2)

  private var prefixes: Set<UInt64> = []
  private var readAt: Duration?

  func mayContain(_ hash: [UInt8]) -> Bool { prefixes.contains(Self.prefix(of: hash)) }

  /// Returns whether the hashes should be read again. If so, the caller reads them.
  mutating func beginsReading(now: Duration) -> Bool {
    if let readAt, now - readAt < Self.ageMax { return false }
    readAt = now
    return true
  }

  mutating func replace(with hashes: [[UInt8]]) {
    prefixes = Set(hashes.map(Self.prefix))
  }

  private static func prefix(of hash: [UInt8]) -> UInt64 {
    hash.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
