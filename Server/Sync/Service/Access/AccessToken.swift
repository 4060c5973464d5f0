import FerryCryptography
import FerryPlatform
import FerryProtocol

/// The secret of a client: `ferry_` and 32 random bytes in base64url (RFC 4648 §5).
///
/// The `CustomStringConvertible` text is incomplete on purpose: in a message it shows nothing of
/// the secret.
package struct AccessToken: Sendable, Equatable, CustomStringConvertible {
  /// The prefix of every token, by which scanners for leaked secrets find it.
  package static let prefix = "ferry_"

  /// The secret. Printed once, when the token is made.
  package let text: String

  /// Creates a new token; `random` must be fit for secrets, as `SystemRandomNumberGenerator` is.
  package init(random: inout some RandomNumberGenerator) {
    let secret = (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }
    var encoded: [UInt8] = []
    secret.withUnsafeBytes { Base64.append($0, to: &encoded) }
    let urlSafe = encoded.filter { $0 != UInt8(ascii: "=") }.map { byte in
      switch byte {
      case UInt8(ascii: "+"): UInt8(ascii: "-")
      case UInt8(ascii: "/"): UInt8(ascii: "_")
      default: byte
      }
    }
    text = Self.prefix + String(decoding: urlSafe, as: UTF8.self)
  }

  /// Reads a token; `nil` for text of another form.
  package init?(_ text: some StringProtocol) {
    let secret = text.utf8.dropFirst(Self.prefix.utf8.count)
    guard text.begins(with: Self.prefix), secret.count == 43,
      secret.allSatisfy({ byte in
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      })
    else { return nil }
    self.text = String(text)
  }

  /// The SHA-256 of the token's text, which the store keeps. A secret of 256 random bits needs no
  /// salt.
  package var hash: [UInt8] { SHA256.digest(of: text) }

  package var description: String { Self.prefix + "…" }
}
