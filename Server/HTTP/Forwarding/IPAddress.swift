import Glibc

/// An IPv4 or IPv6 address. An IPv4 address within IPv6 (`::ffff:0:0/96`) counts as the IPv4
/// address.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
  /// The first 64 bits of the IPv6 form.
  let network: UInt64
  /// The last 64 bits of the IPv6 form.
  let interface: UInt64

  init(network: UInt64, interface: UInt64) {
    self.network = network
    self.interface = interface
  }

  init(ipv4: UInt32) {
    self.init(network: 0, interface: 0xFFFF_0000_0000 | UInt64(ipv4))
  }

  /// Reads `192.0.2.1` or `2001:db8::1`; `nil` for any other text, such as a name, an address with
  /// a zone, or one in brackets.
  package init?(_ text: some Collection<UInt8>) {
    // The system's parser reads a C string, so a zero byte would hide the rest.
    guard (2...Self.textMax).contains(text.count), text.allSatisfy(Self.isInAddresses) else {
      return nil
    }
    var terminated = text.map { CChar(bitPattern: $0) }
    terminated.append(0)
    var version4 = in_addr()
    var version6 = in6_addr()
    if inet_pton(AF_INET, terminated, &version4) == 1 {
      self.init(ipv4: UInt32(bigEndian: version4.s_addr))
    } else if inet_pton(AF_INET6, terminated, &version6) == 1 {
      self = withUnsafeBytes(of: version6) { IPAddress(bytes: $0) }
    } else {
      return nil
    }
  }

  /// Reads the 16 bytes of an IPv6 address.
  init(bytes: UnsafeRawBufferPointer) {
    self.init(
      network: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
      interface: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
  }

  /// True if it is an IPv4 address.
  var isIPv4: Bool { network == 0 && interface >> 32 == 0xFFFF }

  /// The client with this address.
  package var client: ClientAddress {
    ClientAddress(ipv6Network: network, interface: interface)
  }

  package var description: String {
    var bytes = in6_addr()
    withUnsafeMutableBytes(of: &bytes) { bytes in
      bytes.storeBytes(of: network.bigEndian, as: UInt64.self)
      bytes.storeBytes(of: interface.bigEndian, toByteOffset: 8, as: UInt64.self)
    }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
      let (family, start) = isIPv4 ? (AF_INET, 12) : (AF_INET6, 0)
      return withUnsafeBytes(of: bytes) { bytes in
        guard let text = text.baseAddress, let bytes = bytes.baseAddress,
          inet_ntop(family, bytes + start, text, socklen_t(INET6_ADDRSTRLEN)) != nil
        else { return "" }
        return String(cString: text)
      }
    }
  }

  /// The bytes of the longest text, `0000:0000:0000:0000:0000:ffff:255.255.255.255`.
  private static let textMax = 45

  private static func isInAddresses(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x3A, 0x41...0x46, 0x61...0x66, UInt8(ascii: "."): true
    default: false
    }
  }
}
