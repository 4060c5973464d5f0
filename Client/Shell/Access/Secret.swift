import FerryCryptography

/// A random text, known only to the shell and the page. It compares in constant time.
struct Secret: Sendable, Hashable {
  /// 32 characters of `A-Z a-z 0-9 _ -`, of 192 random bits.
  let text: String

  /// Creates a new secret.
  init() { text = Base64URL.encode(SecureRandom.bytes(24)) }

  /// Wraps a text, for tests.
  init(text: String) { self.text = text }

  /// Returns true if a text from outside is the secret. The time does not depend on their
  /// differences.
  func isEqual(to other: some StringProtocol) -> Bool {
    let (own, other) = (Array(text.utf8), Array(other.utf8))
    guard own.count == other.count else { return false }
    return zip(own, other).reduce(0 as UInt8) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
