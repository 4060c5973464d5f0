import FerryPlatform

/// An invitation as a text: a server's address and a code.
///
/// ```swift
/// InvitationLink("https://sync.example.org/join#K7Q2M-0TN4R-…")?.server  // https://sync.example.org
/// ```
///
/// The code is behind `#`, so no server and no proxy sees it when the link is opened (RFC 9110 §4.2.5).
/// Register the address in your app to open links with it.
public struct InvitationLink: Sendable, Equatable, CustomStringConvertible {
  private static let mark = "/join#"

  /// The server's address.
  public let server: String
  /// The invitation's code.
  public let code: String

  /// Creates a link.
  public init(server: String, code: String) {
    var server = server
    while server.ends(with: "/") { server.removeLast() }
    (self.server, self.code) = (server, code)
  }

  /// Reads a link; `nil` for a text of another form, such as a code alone. An address has no user, query
  /// or fragment of its own.
  public init?(_ text: String) {
    guard let place = text.firstRange(of: Self.mark) else { return nil }
    let (server, code) = (text[..<place.lowerBound], text[place.upperBound...])
    // A name before the host would show another server than the one that is asked.
    let isAddress = server.utf8.allSatisfy {
      (0x21...0x7E).contains($0)
        && ![UInt8](arrayLiteral: 0x22, 0x23, 0x3F, 0x40, 0x5C).contains($0)
    }
    guard !code.isEmpty, isAddress,
      server.begins(with: "https://") || server.begins(with: "http://")
    else { return nil }
    self.init(server: String(server), code: String(code))
  }

  /// The text to send to another person.
  public var description: String { server + Self.mark + code }
}
