import FerryProtocol

/// Hashes with a sum over all rows as the digest of a table's content.
///
/// Rows come and go by adding and subtracting. Each column has a separate sum, so columns unknown
/// to a replica can be left out. NULL adds nothing.
enum RowDigest {
  static func record(_ record: Name) -> UInt64 { mixed(text(record.text, 0x6C65_6467_6572)) }

  /// - Parameter record: The digest of the record with the value.
  static func value(_ value: Value, in record: UInt64) -> UInt64 {
    let hash: UInt64
    switch value {
    case .null: return 0
    case .integer(let integer): hash = UInt64(bitPattern: integer) ^ 0x11
    case .real(let real): hash = real.bitPattern &+ 0x2222_2222
    case .text(let content): hash = text(content, 0x3333)
    case .blob(let content): hash = content.withUnsafeBytes { bytes($0, 0x4444) }
    }
    return mixed(record &+ mixed(hash))
  }

  private static func text(_ text: String, _ seed: UInt64) -> UInt64 {
    var text = text
    return text.withUTF8 { bytes(UnsafeRawBufferPointer($0), seed) }
  }

  /// Hashes bytes by FNV-1a over words of eight bytes.
  private static func bytes(_ bytes: UnsafeRawBufferPointer, _ seed: UInt64) -> UInt64 {
    var hash = (0xcbf2_9ce4_8422_2325 ^ seed) &+ UInt64(bytes.count)
    var index = 0
    while index + 8 <= bytes.count {
      let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      hash = mixed(hash ^ UInt64(littleEndian: word))
      index += 8
    }
    while index < bytes.count {
      hash = (hash ^ UInt64(bytes[index])) &* 0x100_0000_01b3
      index += 1
    }
    return hash
  }

  /// Returns SplitMix64's last step: every bit of the input reaches every bit of the output.
  private static func mixed(_ value: UInt64) -> UInt64 {
    var mixed = value &+ 0x9E37_79B9_7F4A_7C15
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
