import FerryPlatform

/// The credential of a request.
package enum Credential: Sendable, Equatable {
  /// No `Authorization` header.
  case none
  /// A header, but no token in it.
  case unreadable
  case token(AccessToken)
  /// A JSON Web Token, not looked into yet.
  case signed(SignedText)

  /// Reads an `Authorization` header (RFC 6750 §2.1).
  package init(authorization header: String?) {
    guard let header else {
      self = .none
      return
    }
    let text = header.trimmedBlanks
    let scheme = text.until(" ")
    guard scheme.lowercasedASCII == "bearer" else {
      self = .unreadable
      return
    }
    let secret = text[scheme.endIndex...].trimmedBlanks
    if let token = AccessToken(secret) {
      self = .token(token)
    } else if let signed = SignedText(secret) {
      self = .signed(signed)
    } else {
      self = .unreadable
    }
  }
}

/// Text of the form of a signed token (RFC 7515 §7.1): three parts of base64url between dots. It
/// shows nothing of itself when it is interpolated into a message.
package struct SignedText: Sendable, Equatable, CustomStringConvertible {
  /// Bytes at most.
  package static let byteCountMax = 16 << 10

  package let text: String

  /// Returns `nil` for text of another form or length.
  package init?(_ text: some StringProtocol) {
    guard text.utf8.count <= Self.byteCountMax else { return nil }
    var dots = 0
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "."): dots += 1
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
        continue
      default: return nil
      }
    }
    guard dots == 2 else { return nil }
    self.text = String(text)
  }

  package var description: String { "a JSON Web Token" }
}
