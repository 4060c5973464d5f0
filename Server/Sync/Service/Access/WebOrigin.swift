import FerryPlatform
import Foundation

/// The origin of web pages: a scheme, a host and a port, as browsers write it (RFC 6454 §6.2).
package struct WebOrigin: Sendable, Hashable, CustomStringConvertible {
  /// `https://app.example` or `http://127.0.0.1:8000`: lower case, without the scheme's own port.
  package let description: String

  /// Reads an origin and writes it as browsers do.
  /// - Throws: `WebOriginError` unless the text is exactly one possible origin of a page.
  package init(_ text: String) throws(WebOriginError) {
    guard !text.has("*") else { throw .pattern }
    guard text.lowercasedASCII != "null" else { throw .null }
    guard let colon = text.utf8.firstRange(of: "://".utf8) else { throw .scheme }
    let scheme = text[..<colon.lowerBound].lowercasedASCII
    guard let usualPort = Self.usualPorts[scheme] else { throw .scheme }
    let authority = String(text[colon.upperBound...])
    guard !authority.utf8.contains(where: { "/?#\\".utf8.contains($0) }) else { throw .path }
    guard !authority.has("@") else { throw .user }
    let (host, port) = try Self.split(authority)
    let written = try Self.written(host)
    let shown = port == nil || port == usualPort ? "" : ":\(port ?? usualPort)"
    description = "\(scheme)://\(written)\(shown)"
  }

  private static let usualPorts: [String: Int] = ["http": 80, "https": 443]
  private static let hostBytes = 253
  private static let labelBytes = 63

  private static func split(
    _ authority: String
  ) throws(WebOriginError) -> (host: String, port: Int?) {
    // The colons of an IPv6 address are inside of brackets.
    let end = authority.begins(with: "[") ? authority.first("]") : authority.startIndex
    let rest = authority[(end ?? authority.endIndex)...]
    guard let colon = rest.last(":") else { return (authority, nil) }
    let digits = authority[authority.utf8.index(after: colon)...]
    guard (1...5).contains(digits.utf8.count), digits.utf8.allSatisfy(isDigit),
      let port = Int(digits), (1...65_535).contains(port)
    else { throw .port }
    return (String(authority[..<colon]), port)
  }

  private static func written(_ host: String) throws(WebOriginError) -> String {
    let lowered = host.lowercasedASCII
    if lowered.begins(with: "[") { return "[\(try writtenIPv6(lowered))]" }
    guard (1...hostBytes).contains(lowered.utf8.count) else { throw .host }
    let labels = lowered.parts(at: ".")
    guard labels.allSatisfy(isLabel), let last = labels.last else { throw .host }
    // Browsers read such a host as a number: 127.1 is 127.0.0.1, and so is 0x7f000001.
    let isNumber = last.utf8.allSatisfy(isDigit) || last.begins(with: "0x")
    guard !isNumber || ListenAddress.isNumeric(lowered) else { throw .host }
    return lowered
  }

  private static func writtenIPv6(_ host: String) throws(WebOriginError) -> String {
    var address = in6_addr()
    guard host.ends(with: "]"),
      inet_pton(AF_INET6, String(Substring(host.utf8.dropFirst().dropLast())), &address) == 1
    else { throw .host }
    let written = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
      guard let start = text.baseAddress, inet_ntop(AF_INET6, &address, start, 64) != nil else {
        return ""
      }
      return String(cString: start)
    }
    // Browsers write an IPv4 address inside of one in another way than the system.
    guard !written.isEmpty, !written.has(".") else { throw .host }
    return written
  }

  private static func isLabel(_ label: Substring) -> Bool {
    (1...labelBytes).contains(label.utf8.count)
      && label.utf8.allSatisfy { byte in
        isDigit(byte) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
          || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
      }
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}

/// The reason for a text to be no origin for a server's list.
package enum WebOriginError: Error, Sendable, Equatable, CaseIterable {
  case pattern
  case null
  case scheme
  case path
  case user
  case host
  case port

  /// The reason, for an administrator.
  package var reason: String {
    switch self {
    case .pattern: "a pattern would let in pages that you have not checked"
    case .null: "every sandboxed frame and every local file has the origin null"
    case .scheme: "an origin begins with https:// or http://"
    case .path: "an origin has no path, no query and no slash at its end"
    case .user: "an origin has no user name and no password"
    case .host: "the host is neither a name in ASCII letters nor a complete IP address"
    case .port: "a port is a number from 1 to 65535"
    }
  }

  /// The next step, for an administrator.
  package var nextStep: String {
    switch self {
    case .pattern: "repeat the option for each origin: https://a.example, https://b.example"
    case .null: "serve the page from a web server, and write the address of that server"
    case .scheme, .path, .user: "write https://app.example or http://127.0.0.1:8000"
    case .host: "write other letters in their form for the network: https://xn--bcher-kva.example"
    case .port: "write https://app.example:8443, or leave the port out"
    }
  }
}
