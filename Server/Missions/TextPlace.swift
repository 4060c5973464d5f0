/// A place in a text as editors show it.
package struct TextPlace: Sendable, Equatable, CustomStringConvertible {
  /// From 1.
  package let line: Int
  /// From 1, in characters of Unicode (scalars).
  package let column: Int

  /// Creates the place of a byte of UTF-8; one behind the end is the end.
  package init(ofByte offset: Int, in text: [UInt8]) {
    let before = text.prefix(max(0, offset))
    line = 1 + before.count { $0 == 0x0A }
    let start = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
    // A continuation byte of a character begins none.
    column = 1 + before[start...].count { $0 & 0xC0 != 0x80 }
  }

  package var description: String { "line \(line), column \(column)" }
}
