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
    let parts = header.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
    guard parts.count == 2, parts[0].lowercased() == "bearer" else {
      self = .unreadable
      return
    }
    let text = parts[1].drop(while: { $0 == " " }).trimmingTrailingSpace
    if let token = AccessToken(text) {
      self = .token(token)
    } else if let signed = SignedText(text) {
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

extension Substring {
  fileprivate var trimmingTrailingSpace: Substring {
    var text = self
    while text.last == " " || text.last == "\t" { text.removeLast() }
    return text
  }
}
