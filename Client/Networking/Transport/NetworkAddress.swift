import FerryPlatform

/// An IP address: 4 or 16 bytes.
package struct NetworkAddress: Sendable, Hashable {
  /// The address, most significant byte first.
  package let bytes: [UInt8]

  /// Creates an IPv4 or IPv6 address from bytes; `nil` for another number of them.
  package init?(bytes: [UInt8]) {
    guard bytes.count == 4 || bytes.count == 16 else { return nil }
    self.bytes = bytes
  }

  /// Reads a literal, such as `10.0.0.1`, `::1` or `[::1]`; `nil` for a name.
  package init?(literal: String) {
    var text = Array(literal.utf8)
    if text.first == UInt8(ascii: "["), text.last == UInt8(ascii: "]") {
      text = Array(text.dropFirst().dropLast())
    }
    // The zone of a link-local address.
    if let zone = text.firstIndex(of: UInt8(ascii: "%")) { text.removeSubrange(zone...) }
    let string = String(decoding: text, as: UTF8.self)
    var (four, six) = (in_addr(), in6_addr())
    if inet_pton(AF_INET, string, &four) == 1 {
      bytes = withUnsafeBytes(of: four) { Array($0) }
    } else if inet_pton(AF_INET6, string, &six) == 1 {
      bytes = withUnsafeBytes(of: six) { Array($0) }
    } else {
      return nil
    }
  }

  /// Reads a socket's address of IPv4 or IPv6; `nil` for another family.
  package init?(socket: UnsafeRawBufferPointer) {
    guard socket.count >= MemoryLayout<sockaddr>.size else { return nil }
    switch Int32(socket.loadUnaligned(as: sockaddr.self).sa_family) {
    case AF_INET where socket.count >= MemoryLayout<sockaddr_in>.size:
      let address = socket.loadUnaligned(as: sockaddr_in.self).sin_addr
      bytes = withUnsafeBytes(of: address) { Array($0) }
    case AF_INET6 where socket.count >= MemoryLayout<sockaddr_in6>.size:
      let address = socket.loadUnaligned(as: sockaddr_in6.self).sin6_addr
      bytes = withUnsafeBytes(of: address) { Array($0) }
    default: return nil
    }
  }

  /// Networks outside of the public internet (RFC 6890 and its registries): loopback, private,
  /// link-local, shared, documentation, multicast and reserved addresses.
  private static let special4: [(prefix: [UInt8], bits: Int)] = [
    ([0], 8), ([10], 8), ([100, 64], 10), ([127], 8), ([169, 254], 16), ([172, 16], 12),
    ([192, 0, 0], 24), ([192, 0, 2], 24), ([192, 88, 99], 24), ([192, 168], 16), ([198, 18], 15),
    ([198, 51, 100], 24), ([203, 0, 113], 24), ([224], 4), ([240], 4),
  ]

  /// The public addresses of IPv6 are in 2000::/3. These networks of it are not public.
  private static let special6: [(prefix: [UInt8], bits: Int)] = [
    ([0x20, 0x01, 0, 0], 23), ([0x20, 0x01, 0x0D, 0xB8], 32), ([0x3F, 0xFF], 20),
  ]

  /// IPv6 networks with an IPv4 address inside, and the offset of the first byte of it.
  private static let embedding: [(prefix: [UInt8], bits: Int, offset: Int)] = [
    ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], 96, 12),
    ([0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0], 96, 12), ([0x20, 0x02], 16, 2),
  ]

  /// True if the address is part of the public internet.
  package var isPublic: Bool {
    if bytes.count == 4 { return !Self.special4.contains { isWithin($0.prefix, $0.bits) } }
    if let part = Self.embedding.first(where: { isWithin($0.prefix, $0.bits) }) {
      return NetworkAddress(bytes: Array(bytes[part.offset..<part.offset + 4]))?.isPublic == true
    }
    return bytes[0] & 0xE0 == 0x20 && !Self.special6.contains { isWithin($0.prefix, $0.bits) }
  }

  private func isWithin(_ prefix: [UInt8], _ bits: Int) -> Bool {
    (0..<(bits + 7) / 8).allSatisfy { index in
      let mask = UInt8(truncatingIfNeeded: 0xFF00 >> min(8, bits - index * 8))
      let wanted = index < prefix.count ? prefix[index] : 0
      return bytes[index] & mask == wanted & mask
    }
  }
}
