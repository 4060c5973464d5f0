import FerryPlatform

/// The name of a table or a column, or the identifier of a record (SPEC.md §2).
///
/// Names compare, hash and sort by the bytes of their UTF-8, as SQLite and PostgreSQL do. Swift's
/// strings compare by canonical equivalence: they take U+212A KELVIN SIGN and `K` for the same.
///
/// ```swift
/// let column: Name = "title"
/// let key = RecordKey(table: "notes", record: Name(uuid.uuidString))
/// ```
public struct Name: Hashable, Sendable, Comparable, CustomStringConvertible,
  ExpressibleByStringInterpolation
{
  /// The characters of the name.
  public let text: String

  /// Wraps a text as it is.
  public init(_ text: some StringProtocol) {
    var text = String(text)
    text.makeContiguousUTF8()
    self.text = text
  }

  /// Wraps a literal.
  public init(stringLiteral value: String) { self.init(value) }

  /// The bytes for comparisons of the name.
  public var utf8: String.UTF8View { text.utf8 }

  /// True if the name has no byte.
  public var isEmpty: Bool { text.isEmpty }

  public var description: String { text }

  public static func == (left: Name, right: Name) -> Bool {
    if left.hasBits(of: right) { return true }
    return left.utf8.count == right.utf8.count && order(left, right) == 0
  }

  /// Returns `true` if both share their storage, or are short and equal. Names of one message
  /// mostly do.
  @inline(__always)
  private func hasBits(of other: Name) -> Bool {
    withUnsafeBytes(of: text) { own in
      withUnsafeBytes(of: other.text) { hasSameBytes(own, $0) }
    }
  }

  public static func < (left: Name, right: Name) -> Bool { order(left, right) < 0 }

  public func hash(into hasher: inout Hasher) {
    withBytes { hasher.combine(bytes: $0) }
    hasher.combine(0xFF as UInt8)
  }

  /// Calls `body` with the bytes of the name.
  package func withBytes<T>(_ body: (UnsafeRawBufferPointer) throws -> T) rethrows -> T {
    var text = text
    return try text.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
  }

  /// Returns whether the name consists of these bytes.
  @inline(__always)
  package func isEqual(to bytes: UnsafeRawBufferPointer) -> Bool {
    withBytes { hasSameBytes($0, bytes) }
  }

  /// Compares two names: negative, zero or positive if `left` is before, at or after `right`.
  private static func order(_ left: Name, _ right: Name) -> Int {
    left.withBytes { left in
      right.withBytes { right in
        let count = min(left.count, right.count)
        if count > 0, let left = left.baseAddress, let right = right.baseAddress {
          let order = memcmp(left, right, count)
          if order != 0 { return Int(order) }
        }
        return left.count - right.count
      }
    }
  }
}

extension Name {
  /// Returns a command with this table's name, for a message. A name unsafe to paste is left out.
  package func command(_ command: String) -> String {
    SuggestedCommand.line(command, [text], or: "TABLE")
  }

  /// The name with ASCII letters in lower case. SQLite considers two names of tables or columns the
  /// same if these are equal; it folds no other letter.
  package var folded: Name {
    guard utf8.contains(where: { (0x41...0x5A).contains($0) }) else { return self }
    let bytes = utf8.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 }
    return Name(String(decoding: bytes, as: UTF8.self))
  }
}
