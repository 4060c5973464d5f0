/// A writer that appends JSON (RFC 8259) to bytes.
///
///     var json = JSONWriter()
///     json.object { json in
///       json.member("table", table)
///       json.key("records")
///       json.array(of: names)
///     }
package struct JSONWriter {
  package private(set) var bytes: [UInt8] = []

  package init(capacity: Int = 0) {
    if capacity > 0 { bytes.reserveCapacity(capacity) }
  }

  /// Begins again in the same memory.
  package mutating func restart() { bytes.removeAll(keepingCapacity: true) }

  /// Hands the bytes over without a copy.
  package consuming func finish() -> [UInt8] { bytes }

  /// Bytes written so far.
  package var count: Int { bytes.count }

  /// Appends finished JSON.
  @inline(__always)
  package mutating func raw(_ text: StaticString) {
    text.withUTF8Buffer { bytes.append(contentsOf: $0) }
  }

  /// Appends finished JSON.
  package mutating func raw(_ json: some Collection<UInt8>) { bytes.append(contentsOf: json) }

  /// Appends finished JSON.
  package mutating func raw(_ json: UnsafeRawBufferPointer) { bytes.append(contentsOf: json) }

  // The generic one is not specialised for callers in other modules.
  /// Appends finished JSON.
  package mutating func raw(_ json: UnsafeBufferPointer<UInt8>) { bytes.append(contentsOf: json) }

  /// Appends finished JSON.
  package mutating func raw(_ json: [UInt8]) { bytes.append(contentsOf: json) }

  /// Appends up to 256 bytes. `write` puts them at a pointer, and moves the pointer to their end.
  @inline(__always)
  mutating func block(_ write: (inout UnsafeMutableRawPointer) -> Void) {
    withUnsafeTemporaryAllocation(byteCount: 256, alignment: 8) { room in
      guard let start = room.baseAddress else { return }
      var end = start
      write(&end)
      raw(UnsafeRawBufferPointer(start: start, count: end - start))
    }
  }

  /// Inserts finished JSON before everything else.
  package mutating func prepend(_ json: [UInt8]) { bytes.insert(contentsOf: json, at: 0) }

  /// Appends a byte of the structure.
  @inline(__always)
  mutating func byte(_ byte: UInt8) { bytes.append(byte) }

  package mutating func number(_ value: Int64) {
    block { $0.append(decimal: value) }
  }

  /// Appends a 64-bit integer as a string, since many JSON readers lose digits above 2^53.
  package mutating func numberString(_ value: Int64) {
    bytes.append(0x22)
    number(value)
    bytes.append(0x22)
  }

  package mutating func bool(_ value: Bool) {
    if value { raw("true") } else { raw("false") }
  }

  package mutating func string(_ id: UniqueID) {
    bytes.append(0x22)
    id.appendText(to: &bytes)
    bytes.append(0x22)
  }

  package mutating func string(_ time: HybridTimestamp) {
    bytes.append(0x22)
    time.appendText(to: &bytes)
    bytes.append(0x22)
  }

  package mutating func string(_ name: Name) { string(name.text) }

  package mutating func string(_ text: String) {
    var text = text
    text.withUTF8 { string(utf8: $0) }
  }

  /// Appends a string of valid UTF-8.
  package mutating func string(utf8 text: UnsafeBufferPointer<UInt8>) {
    bytes.append(0x22)
    var plain = 0
    var isASCII = true
    while true {
      let end = text.plainEnd(from: plain, isASCII: &isASCII)
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[plain..<end]))
      guard end < text.count else { break }
      escape(text[end])
      plain = end + 1
    }
    bytes.append(0x22)
  }

  private mutating func escape(_ byte: UInt8) {
    bytes.append(0x5C)
    switch byte {
    case 0x22, 0x5C: bytes.append(byte)
    case 0x0A: bytes.append(0x6E)
    case 0x0D: bytes.append(0x72)
    case 0x09: bytes.append(0x74)
    default:
      raw("u00")
      bytes.append(hexDigit(UInt64(byte >> 4)))
      bytes.append(hexDigit(UInt64(byte)))
    }
  }

  /// Appends standard base64 (RFC 4648 §4) as a string.
  package mutating func base64(_ blob: UnsafeRawBufferPointer) {
    bytes.append(0x22)
    Base64.append(blob, to: &bytes)
    bytes.append(0x22)
  }
}

/// Standard base64 with padding (RFC 4648 §4), strict when read.
package enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 0xFF, count: 256)
    for (value, byte) in alphabet.enumerated() { values[Int(byte)] = UInt8(value) }
    return values
  }()

  package static func append(_ blob: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
    var index = 0
    while index < blob.count {
      let rest = blob.count - index
      let first = blob[index]
      let second = rest > 1 ? blob[index + 1] : 0
      let third = rest > 2 ? blob[index + 2] : 0
      bytes.append(alphabet[Int(first >> 2)])
      bytes.append(alphabet[Int((first & 0x3) << 4 | second >> 4)])
      bytes.append(rest > 1 ? alphabet[Int((second & 0xF) << 2 | third >> 6)] : 0x3D)
      bytes.append(rest > 2 ? alphabet[Int(third & 0x3F)] : 0x3D)
      index += 3
    }
  }

  /// Returns the bytes; `nil` if the text is not exactly the output of `append`.
  package static func decode(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    guard text.count % 4 == 0 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count / 4 * 3)
    var index = 0
    while index < text.count {
      let isLast = index + 4 == text.count
      let padding =
        !isLast || text[index + 3] != 0x3D ? 0 : text[index + 2] == 0x3D ? 2 : 1
      var word: UInt32 = 0
      for offset in 0..<4 {
        let value = offset >= 4 - padding ? 0 : values[Int(text[index + offset])]
        guard value != 0xFF else { return nil }
        word = word << 6 | UInt32(value)
      }
      bytes.append(UInt8(word >> 16 & 0xFF))
      if padding < 2 { bytes.append(UInt8(word >> 8 & 0xFF)) }
      if padding < 1 { bytes.append(UInt8(word & 0xFF)) }
      let unusedBits: UInt32 = padding == 2 ? 0xFFFF : padding == 1 ? 0xFF : 0
      guard word & unusedBits == 0 else { return nil }
      index += 4
    }
    return bytes
  }
}
