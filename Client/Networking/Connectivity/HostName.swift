import FerryPlatform
import Foundation

/// Facts from a host's text alone.
enum HostName {
  /// Returns true if the host is a literal address.
  static func isAddress(_ host: String) -> Bool {
    octets(host) != nil || words(host) != nil
  }

  /// Returns true if the host always means this machine: 127/8, `::1`, and `localhost` names (RFC
  /// 6761 §6.3).
  static func isLoopback(_ host: String) -> Bool {
    if let octets = octets(host) { return octets[0] == 127 }
    if let bytes = words(host) {
      let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 255 && bytes[11] == 255
      return isMapped ? bytes[12] == 127 : bytes == [UInt8](repeating: 0, count: 15) + [1]
    }
    return host == "localhost" || host.ends(with: ".localhost")
  }

  /// Returns the four bytes of an IPv4 address in the usual form.
  static func octets(_ host: String) -> [UInt8]? {
    var address = in_addr()
    guard inet_pton(AF_INET, host, &address) == 1 else { return nil }
    return withUnsafeBytes(of: &address) { Array($0) }
  }

  /// Returns the sixteen bytes of an IPv6 address, without the zone.
  static func words(_ host: String) -> [UInt8]? {
    var address = in6_addr()
    guard inet_pton(AF_INET6, String(host.until("%")), &address) == 1 else { return nil }
    return withUnsafeBytes(of: &address) { Array($0) }
  }
}
