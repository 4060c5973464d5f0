/// A 128-bit UUID (RFC 9562). Ferry makes version 7, whose order is the order of creation.
public struct UniqueID: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The first eight bytes, big endian.
  public let high: UInt64
  /// The last eight bytes, big endian.
  public let low: UInt64

  /// Creates a UUID from two halves in RFC 9562's layout.
  public init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Creates a version 7 UUID. The timestamp's counter fills `rand_a` and the first four bits of
  /// `rand_b` (RFC 9562 §6.2, method 1). So ids of one clock sort like the timestamps. 58 bits of
  /// `random` fill the rest.
  public init(timestamp: HybridTimestamp, random: UInt64) {
    let counter = timestamp.rawValue & 0xFFFF
    high = (timestamp.rawValue & 0xFFFF_FFFF_FFFF_0000) | 0x7000 | (counter >> 4)
    low = 0x8000_0000_0000_0000 | ((counter & 0xF) << 58) | (random & 0x03FF_FFFF_FFFF_FFFF)
  }

  /// The hybrid timestamp written into the id by `init(timestamp:random:)`.
  public var timestamp: HybridTimestamp {
    let counter = ((high & 0xFFF) << 4) | ((low >> 58) & 0xF)
    return HybridTimestamp(rawValue: (high & 0xFFFF_FFFF_FFFF_0000) | counter)
  }

  /// The version in the thirteenth digit (RFC 9562 §4.2).
  package var version: UInt8 { UInt8(truncatingIfNeeded: high >> 12 & 0xF) }

  /// The version of the id of a batch's effect on one record (SPEC.md §14).
  package static let effectVersion: UInt8 = 8

  /// The version of the id of a record with an integer from the device (SPEC.md §27).
  package static let numberedVersion: UInt8 = 8

  /// True if the id begins with the time of creation, in milliseconds since 1970.
  package var containsTime: Bool { version == 7 || version == Self.numberedVersion }

  /// Creates the id of a record whose device calls it by an integer: the time in milliseconds, 42
  /// bits of `random` and the integer.
  package init(milliseconds: Int64, random: UInt64, number: UInt32) {
    high =
      (UInt64(bitPattern: milliseconds) << 16) | (UInt64(Self.numberedVersion) << 12)
      | (random & 0xFFF)
    low = 0x8000_0000_0000_0000 | ((random >> 12 & 0x3FFF_FFFF) << 32) | UInt64(number)
  }

  /// The integer from the record's device; `nil` if the id has none.
  package var number: Int64? {
    let number = Int64(low & 0xFFFF_FFFF)
    return version == Self.numberedVersion && number > 0 ? number : nil
  }

  /// Parses the 36-character form; `nil` when it is anything else. Upper case is accepted.
  public init?(_ text: some StringProtocol) {
    var text = String(text)
    let parsed = text.withUTF8 { UniqueID(utf8: $0) }
    guard let parsed else { return nil }
    self = parsed
  }

  /// Parses the 36-character form from UTF-8 bytes.
  package init?(utf8 bytes: UnsafeBufferPointer<UInt8>) {
    if let id = UniqueID(lowercase: UnsafeRawBufferPointer(bytes)) {
      self = id
      return
    }
    guard bytes.count == 36 else { return nil }
    let lower = bytes.map { (0x41...0x46).contains($0) ? $0 | 0x20 : $0 }
    let id = lower.withUnsafeBytes { UniqueID(lowercase: $0) }
    guard let id else { return nil }
    self = id
  }

  /// Parses the 36-character form in lower case; `nil` for anything that ``description`` does not
  /// return.
  package init?(lowercase bytes: UnsafeRawBufferPointer) {
    guard bytes.count == 36, bytes[8] == 0x2D, bytes[13] == 0x2D, bytes[18] == 0x2D,
      bytes[23] == 0x2D
    else { return nil }
    func eight(_ first: Int, _ second: Int) -> UInt64? {
      let halves = (
        UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: first, as: UInt32.self)),
        UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: second, as: UInt32.self))
      )
      return hexValue(digits: UInt64(halves.0) << 32 | UInt64(halves.1))
    }
    guard let first = eight(0, 4), let second = eight(9, 14), let third = eight(19, 24),
      let fourth = eight(28, 32)
    else { return nil }
    self.init(high: first << 32 | second, low: third << 32 | fourth)
  }

  /// Creates the sixteen bytes in network order; `nil` for any other count.
  package init?(bytes: UnsafeRawBufferPointer) {
    guard bytes.count == 16 else { return nil }
    high = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
    low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
  }

  /// The sixteen bytes in network order.
  public var bytes: [UInt8] {
    withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Array($0) }
  }

  /// The lower-case 36-character form.
  public var description: String {
    var text: [UInt8] = []
    text.reserveCapacity(36)
    appendText(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  package func appendText(to text: inout [UInt8]) {
    withUnsafeTemporaryAllocation(byteCount: 36, alignment: 8) { room in
      guard var end = room.baseAddress else { return }
      end.append(self)
      text.append(contentsOf: UnsafeRawBufferPointer(room))
    }
  }

  public static func < (left: UniqueID, right: UniqueID) -> Bool {
    (left.high, left.low) < (right.high, right.low)
  }
}
