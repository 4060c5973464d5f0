/// All addresses with the same first bits: `10.0.0.0/8`, `2001:db8::/32`, or one address.
package struct AddressRange: Sendable, Equatable {
  private let first: IPAddress
  /// The number of fixed bits of the IPv6 form.
  private let bits: Int

  /// Reads an address, or an address with the number of fixed first bits (CIDR). `nil` if the text
  /// is neither, if it has other bits, or if no bit counts: this would be every address.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    let slash = bytes.firstIndex(of: UInt8(ascii: "/")) ?? bytes.endIndex
    guard let first = IPAddress(bytes[..<slash]) else { return nil }
    self.first = first
    guard slash < bytes.endIndex else {
      bits = 128
      return
    }
    let digits = bytes[(slash + 1)...]
    guard (1...3).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }),
      let count = Int(String(decoding: digits, as: UTF8.self)),
      (1...(first.isIPv4 ? 32 : 128)).contains(count)
    else { return nil }
    bits = first.isIPv4 ? count + 96 : count
    guard Self.masked(first, bits) == first else { return nil }
  }

  package func contains(_ address: IPAddress) -> Bool {
    Self.masked(address, bits) == first
  }

  private static func masked(_ address: IPAddress, _ bits: Int) -> IPAddress {
    IPAddress(
      network: address.network & mask(min(bits, 64)),
      interface: address.interface & mask(max(bits - 64, 0)))
  }

  /// Returns a number whose first `bits` bits are set.
  private static func mask(_ bits: Int) -> UInt64 { ~(UInt64.max >> UInt64(bits)) }
}
