import FerryPlatform

/// The parts of an address needed by the transport itself; curl reads the rest.
package struct RequestAddress: Equatable {
  /// True if the scheme is https.
  package let isSecure: Bool
  /// The host, with the brackets of an IPv6 literal.
  package let host: String
  /// The port; the scheme's default if the address has none.
  package let port: Int

  /// `host:port`, for messages: never with credentials or path.
  package var endpoint: String { "\(host):\(port)" }

  /// Returns the endpoint for messages about a request to `first`: the reason of a failure is at
  /// the address of the last redirect.
  package func endpoint(redirectedFrom first: RequestAddress) -> String {
    endpoint == first.endpoint ? endpoint : "\(endpoint) (a redirect from \(first.endpoint))"
  }

  /// Returns true if both have the same scheme, host and port (RFC 6454 §5).
  package func hasSameOrigin(as other: RequestAddress) -> Bool {
    isSecure == other.isSecure && port == other.port
      && host.lowercasedASCII == other.host.lowercasedASCII
  }

  /// Reads an absolute address; throws kind `badAddress`.
  package init(_ url: String) throws(TransportError) {
    guard url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
      throw TransportError(.badAddress, "the address contains blanks or control characters")
    }
    // By bytes: a combining mark and the slash before it would form one character.
    let bytes = url.utf8
    let colon = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
    guard bytes[colon...].starts(with: "://".utf8) else {
      throw TransportError(.badAddress, "“\(url)” is not an address: it needs http:// or https://")
    }
    let scheme = url[..<colon].lowercasedASCII
    guard scheme == "http" || scheme == "https" else {
      throw TransportError(.badAddress, "“\(scheme)” addresses are not supported")
    }
    let authority = bytes[colon...].dropFirst(3).prefix { !Self.endsAuthority($0) }
    let host = authority.lastIndex(of: UInt8(ascii: "@")).map(authority.index(after:))
    let hostAndPort = authority[(host ?? authority.startIndex)...]
    let hostEnd =
      hostAndPort.first == UInt8(ascii: "[")
      ? hostAndPort.firstIndex(of: UInt8(ascii: "]")).map(hostAndPort.index(after:))
        ?? hostAndPort.startIndex
      : hostAndPort.firstIndex(of: UInt8(ascii: ":")) ?? hostAndPort.endIndex
    guard hostEnd > hostAndPort.startIndex else {
      throw TransportError(.badAddress, "the address names no host")
    }
    isSecure = scheme == "https"
    self.host = String(Substring(hostAndPort[..<hostEnd]))
    port = try Self.port(Substring(hostAndPort[hostEnd...]), default: isSecure ? 443 : 80)
  }

  private static func endsAuthority(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
  }

  /// Reads `:8080`; an empty text, and a colon alone (RFC 3986 §3.2.3), mean the default.
  private static func port(
    _ text: Substring, default defaultPort: Int
  ) throws(TransportError) -> Int {
    let digits = text.dropFirst()
    if text.isEmpty || text == ":" { return defaultPort }
    guard text.utf8.first == UInt8(ascii: ":"), digits.utf8.allSatisfy({ 48...57 ~= $0 }),
      let port = Int(digits),
      1...65_535 ~= port
    else { throw TransportError(.badAddress, "“\(digits)” is not a port") }
    return port
  }
}
