import FerryCryptography
import FerryProtocol

/// The secret of an invitation: 25 random characters in groups of five, which a person can type.
/// The alphabet is Crockford's base 32, with five bits a character.
///
/// The `CustomStringConvertible` text shows nothing of it.
struct InvitationCode: Sendable, Equatable, CustomStringConvertible {
  private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
  private static let groups = 5
  private static let groupCount = 5

  /// The code as it is shown, once.
  let text: String

  /// Creates a new code; `random` must be fit for secrets.
  init(random: inout some RandomNumberGenerator) {
    let groups = (0..<Self.groups).map { _ in
      (0..<Self.groupCount).map { _ in
        Self.alphabet[Int.random(in: 0..<Self.alphabet.count, using: &random)]
      }
    }
    text = String(decoding: Array(groups.joined(separator: "-".utf8)), as: UTF8.self)
  }

  /// Reads a code as a person types it: in any case, with or without hyphens and blanks, O for 0, and
  /// I or L for 1. Returns `nil` for a text of another form.
  init?(_ text: String) {
    var digits: [UInt8] = []
    for byte in text.utf8 where byte != UInt8(ascii: "-") && byte != UInt8(ascii: " ") {
      let upper = (0x61...0x7A).contains(byte) ? byte - 0x20 : byte
      let digit =
        switch upper {
        case UInt8(ascii: "O"): UInt8(ascii: "0")
        case UInt8(ascii: "I"), UInt8(ascii: "L"): UInt8(ascii: "1")
        default: upper
        }
      guard Self.alphabet.contains(digit), digits.count < Self.groups * Self.groupCount else {
        return nil
      }
      digits.append(digit)
    }
    guard digits.count == Self.groups * Self.groupCount else { return nil }
    let groups = (0..<Self.groups).map { digits[$0 * Self.groupCount..<($0 + 1) * Self.groupCount] }
    self.text = String(decoding: Array(groups.joined(separator: "-".utf8)), as: UTF8.self)
  }

  /// The SHA-256 of the text, which the store keeps. A secret of 125 random bits needs no salt.
  var hash: [UInt8] { SHA256.digest(of: text) }

  var description: String { "an invitation's code" }
}
