/// The few forms of ASN.1's distinguished encoding (X.690) for keys and signatures.
enum DER {
  static let null: [UInt8] = [0x05, 0x00]

  static func sequence(_ parts: [UInt8]...) -> [UInt8] { tagged(0x30, parts.flatMap { $0 }) }

  static func bitString(_ bytes: [UInt8]) -> [UInt8] { tagged(0x03, [0] + bytes) }

  /// Returns an identifier in encoded form, without tag and length.
  static func identifier(_ content: [UInt8]) -> [UInt8] { tagged(0x06, content) }

  /// Returns a non-negative number, given with the most significant byte first.
  static func integer(_ bytes: some Collection<UInt8>) -> [UInt8] {
    var digits = Array(bytes.drop { $0 == 0 })
    if digits.isEmpty || digits[0] >= 0x80 { digits.insert(0, at: 0) }
    return tagged(0x02, digits)
  }

  private static func tagged(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    [tag] + length(content.count) + content
  }

  private static func length(_ count: Int) -> [UInt8] {
    if count < 0x80 { return [UInt8(count)] }
    var bytes: [UInt8] = []
    var rest = count
    while rest > 0 {
      bytes.insert(UInt8(truncatingIfNeeded: rest), at: 0)
      rest >>= 8
    }
    return [0x80 | UInt8(bytes.count)] + bytes
  }
}
