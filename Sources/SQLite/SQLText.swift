import FerryPlatform

/// The text of a statement, compared by bytes: two texts equal in Swift may name two columns.
struct SQLText: Hashable {
  private let text: String

  init(_ text: String) { self.text = text }

  static func == (left: SQLText, right: SQLText) -> Bool {
    guard left.text.utf8.count == right.text.utf8.count else { return false }
    return left.withBytes { left in
      right.withBytes { right in
        guard let one = left.baseAddress, let other = right.baseAddress else { return true }
        return memcmp(one, other, left.count) == 0
      }
    }
  }

  /// Hashes the length and a few words: texts are long, and ``==(_:_:)`` compares all their bytes.
  func hash(into hasher: inout Hasher) {
    withBytes { bytes in
      let word = MemoryLayout<UInt64>.size
      hasher.combine(bytes.count)
      guard bytes.count > 4 * word else { return hasher.combine(bytes: bytes) }
      for part in 1...4 {
        let offset = (bytes.count - word) * part / 4
        hasher.combine(bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      }
    }
  }

  /// True if the text contains U+0000.
  var containsZero: Bool {
    withBytes { bytes in
      guard let start = bytes.baseAddress else { return false }
      return memchr(start, 0, bytes.count) != nil
    }
  }

  private func withBytes<T>(_ body: (UnsafeRawBufferPointer) -> T) -> T {
    var text = text
    return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
  }
}
