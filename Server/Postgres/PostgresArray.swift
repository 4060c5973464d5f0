import Foundation

/// A builder of one array parameter in binary format, for `unnest($1::bigint[], …)`.
///
/// All elements are in one contiguous buffer, each behind its length, as PostgreSQL's `array_recv`
/// reads them. The server refuses a value above 1 GiB.
package struct PostgresArray<Element: PostgresElement>: Sendable {
  /// Elements appended, NULLs included.
  package private(set) var count = 0
  private var hasNull = false
  private var bytes: [UInt8]

  /// Dimensions, NULL flag, element type, then the only dimension's length and lower bound.
  private static var headerLength: Int { 20 }
  private static var emptyHeaderLength: Int { 12 }

  /// Creates an empty array. The reservation is in elements and in bytes of values.
  package init(reserving elements: Int = 0, valueBytes: Int = 0) {
    bytes = [UInt8](repeating: 0, count: Self.headerLength)
    bytes.reserveCapacity(Self.headerLength + elements * 4 + valueBytes)
  }

  /// Creates an array of the elements; `nil` becomes NULL.
  package init(_ elements: some Sequence<Element?>) {
    self.init(reserving: elements.underestimatedCount, valueBytes: elements.underestimatedCount * 8)
    for element in elements { append(element) }
  }

  package mutating func append(_ value: Element) {
    appendValue { value.encode(into: &$0) }
  }

  /// Nil becomes NULL.
  package mutating func append(_ value: Element?) {
    if let value { append(value) } else { appendNull() }
  }

  package mutating func appendNull() {
    bytes.append(bigEndian: Int32(-1))
    hasNull = true
    count += 1
  }

  /// Writes one value behind the length, which is known only afterwards.
  private mutating func appendValue(_ write: (inout [UInt8]) -> Void) {
    let start = bytes.count
    bytes.append(bigEndian: Int32(0))
    write(&bytes)
    bytes.store(bigEndian: Int32(bytes.count - start - 4), at: start)
    count += 1
  }

  /// Appends the finished array to a parameter buffer.
  func encode(into target: inout [UInt8]) { target.append(contentsOf: encoded()) }

  /// Returns the finished array, in the same memory.
  consuming func encoded() -> [UInt8] {
    if count == 0 {
      bytes.removeLast(Self.headerLength - Self.emptyHeaderLength)
    } else {
      bytes.store(bigEndian: 1, at: 0)
      bytes.store(bigEndian: Int32(count), at: 12)
      bytes.store(bigEndian: 1, at: 16)
    }
    bytes.store(bigEndian: hasNull ? 1 : 0, at: 4)
    bytes.store(bigEndian: Int32(Element.postgresType.oid), at: 8)
    return bytes
  }
}

extension PostgresArray where Element: FixedWidthInteger {
  /// Appends length and value at once: the common case of a bulk write.
  package mutating func append(_ value: Element) {
    bytes.append(bigEndian: Int32(MemoryLayout<Element>.size))
    bytes.append(bigEndian: value)
    count += 1
  }
}

extension PostgresArray where Element == String {
  /// Appends text in UTF-8 without making a String; the server checks the UTF-8.
  package mutating func append(utf8 value: some Collection<UInt8>) {
    appendValue { $0.append(contentsOf: value) }
  }

  // The generic one is not specialised for callers in other modules.
  /// Appends a string's own UTF-8.
  package mutating func append(utf8 value: String.UTF8View) {
    appendValue { $0.append(contentsOf: value) }
  }

  /// Appends text in UTF-8 without making a String; the server checks the UTF-8.
  package mutating func append(utf8 value: [UInt8]) {
    appendValue { $0.append(contentsOf: value) }
  }
}

extension PostgresArray where Element == [UInt8] {
  // The generic one is not specialised for callers in other modules.
  package mutating func append(bytes value: UnsafeRawBufferPointer) {
    appendValue { $0.append(contentsOf: value) }
  }

  package mutating func append(bytes value: some Collection<UInt8>) {
    appendValue { $0.append(contentsOf: value) }
  }
}

extension PostgresArray where Element == UUID {
  /// Appends an id of 16 raw bytes.
  package mutating func append(uuidBytes value: some Collection<UInt8>) {
    precondition(value.count == 16, "a uuid has 16 bytes, not \(value.count)")
    appendValue { $0.append(contentsOf: value) }
  }

  /// Appends an id of two halves, most significant first.
  package mutating func append(high: UInt64, low: UInt64) {
    bytes.append(bigEndian: Int32(16))
    bytes.append(bigEndian: high)
    bytes.append(bigEndian: low)
    count += 1
  }
}
