/// The bytes of a message, read from front to back. A length is checked before anything of it is
/// read.
struct ReplicationBytes {
  private let bytes: ArraySlice<UInt8>
  private var place: Int

  init(_ bytes: ArraySlice<UInt8>) {
    self.bytes = bytes
    place = bytes.startIndex
  }

  var count: Int { bytes.endIndex - place }
  var isEmpty: Bool { count == 0 }

  mutating func byte() throws(ReplicationFault) -> UInt8 {
    let found = try read(1)
    return found[found.startIndex]
  }

  /// Reads an integer in network byte order.
  mutating func integer<T: FixedWidthInteger>(_: T.Type = T.self) throws(ReplicationFault) -> T {
    try read(MemoryLayout<T>.size).reduce(0) { $0 << 8 | T(truncatingIfNeeded: $1) }
  }

  mutating func position() throws(ReplicationFault) -> PostgresLSN {
    PostgresLSN(try integer(UInt64.self))
  }

  /// Reads a count, which is never negative.
  mutating func count16() throws(ReplicationFault) -> Int {
    let count = Int(try integer(Int16.self))
    guard count >= 0 else { throw ReplicationFault("a count is \(count)") }
    return count
  }

  mutating func count32() throws(ReplicationFault) -> Int {
    let count = Int(try integer(Int32.self))
    guard count >= 0 else { throw ReplicationFault("a count is \(count)") }
    return count
  }

  /// Reads bytes behind their length.
  mutating func counted() throws(ReplicationFault) -> ArraySlice<UInt8> { try read(try count32()) }

  /// Reads a text up to a zero byte.
  mutating func text() throws(ReplicationFault) -> String {
    guard let end = bytes[place...].firstIndex(of: 0) else {
      throw ReplicationFault("a text has no end")
    }
    let found = bytes[place..<end]
    place = end + 1
    guard let text = String(validating: found, as: UTF8.self) else {
      throw ReplicationFault("a name is not UTF-8")
    }
    return text
  }

  mutating func rest() -> ArraySlice<UInt8> {
    defer { place = bytes.endIndex }
    return bytes[place...]
  }

  /// - Throws: ``ReplicationFault`` if bytes are left.
  func end() throws(ReplicationFault) {
    guard isEmpty else { throw ReplicationFault("\(count) bytes follow a message") }
  }

  private mutating func read(_ length: Int) throws(ReplicationFault) -> ArraySlice<UInt8> {
    guard length <= count else {
      throw ReplicationFault("a message ends \(length - count) bytes too early")
    }
    defer { place += length }
    return bytes[place..<place + length]
  }
}
