/// The client of a connection: an IPv4 address, or the first 64 bits of an IPv6 address. These name
/// a network; one machine chooses the others as it likes.
package struct ClientAddress: Hashable, Sendable {
  private let bits: UInt64
  private let isIPv6: Bool

  init(ipv4: UInt32) {
    bits = UInt64(ipv4)
    isIPv6 = false
  }

  init(ipv6Network: UInt64, interface: UInt64) {
    let isLoopback = ipv6Network == 0 && interface == 1
    // ::ffff:0:0/96 holds the IPv4 addresses.
    let isMapped = ipv6Network == 0 && interface >> 32 == 0xFFFF
    bits = isMapped ? interface & 0xFFFF_FFFF : isLoopback ? Self.loopback : ipv6Network
    isIPv6 = !isMapped && !isLoopback
  }

  /// False for this machine: a proxy on it speaks for many clients.
  package var isLimited: Bool { isIPv6 || bits >> 24 != Self.loopback >> 24 }

  private static let loopback: UInt64 = 0x7F00_0001
}
