#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The text of a statement, compared by its bytes: two texts that Swift takes for equal may name
/// two columns.
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

  func hash(into hasher: inout Hasher) { withBytes { hasher.combine(bytes: $0) } }

  private func withBytes<T>(_ body: (UnsafeRawBufferPointer) -> T) -> T {
    var text = text
    return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
  }
}
