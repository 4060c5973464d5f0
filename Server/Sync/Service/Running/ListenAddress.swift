import FerryCryptography
import FerryPlatform
import Foundation

/// The address of a server: an IPv4 or IPv6 address and a port, `127.0.0.1:8080` or `[::1]:8080`.
package struct ListenAddress: Sendable, Equatable, CustomStringConvertible {
  /// The address without brackets.
  package var host: String
  /// 0 asks the system for a free one.
  package var port: UInt16

  package init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }

  /// Reads `HOST:PORT`. `localhost` is taken as 127.0.0.1. Other names give `nil`, since their
  /// addresses change.
  package init?(_ text: String) {
    guard let colon = text.last(":"),
      let port = UInt16(text[text.utf8.index(after: colon)...])
    else { return nil }
    var host = String(text[..<colon])
    if let inner = host.rest(after: "[")?.start(before: "]") {
      host = String(inner)
      guard host.has(":") else { return nil }
    } else if host == "localhost" {
      host = "127.0.0.1"
    } else if host.has(":") {
      return nil
    }
    guard Self.isNumeric(host) else { return nil }
    self.init(host: host, port: port)
  }

  package var description: String {
    host.has(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }

  /// True if only this machine can connect.
  package var isLoopback: Bool { Self.isLoopback(host: host) }

  /// Returns whether the authority of a URL (`Host` header) names this machine.
  static func isLoopback(authority: String) -> Bool {
    host(ofAuthority: authority).map { isLoopback(host: $0) } ?? false
  }

  /// Returns the host of an authority, without port and brackets; `nil` if a bracket is not closed.
  static func host(ofAuthority authority: String) -> String? {
    guard let rest = authority.rest(after: "[") else { return String(authority.until(":")) }
    return rest.first("]").map { String(rest[..<$0]) }
  }

  private static func isLoopback(host: String) -> Bool {
    let lowered = host.lowercasedASCII
    if lowered == "localhost" || lowered.ends(with: ".localhost") || lowered == "::1" {
      return true
    }
    return lowered.begins(with: "127.") && isNumeric(lowered)
  }
}

// The system's own parser decides whether a text is an address.
extension ListenAddress {
  static func isNumeric(_ host: String) -> Bool {
    var storage = in6_addr()
    return inet_pton(host.has(":") ? AF_INET6 : AF_INET, host, &storage) == 1
  }

  /// Returns the first 64 bits of an IPv6 address; `nil` for other text.
  static func network(of address: String) -> String? {
    guard address.utf8.contains(UInt8(ascii: ":")) else { return nil }
    var storage = in6_addr()
    guard inet_pton(AF_INET6, address, &storage) == 1 else { return nil }
    return withUnsafeBytes(of: storage) { Hexadecimal.text($0.prefix(8)) }
  }
}
