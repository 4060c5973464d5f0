import FerryPlatform

/// A `Content-Range` field in bytes (RFC 9110 §14.4): the place of a part in the whole.
package struct ContentRange: Sendable, Equatable {
  /// The bytes of the part; `nil` if the server could satisfy no range.
  package let bytes: Range<Int64>?
  /// The bytes of the whole; `nil` if the sender does not know.
  package let total: Int64?

  /// Reads `bytes 0-9/100`, `bytes 0-9/*` and `bytes */100`; `nil` for any other text.
  package init?(_ field: String) {
    let words = field.words(at: " ")
    guard words.count == 2, words[0].lowercasedASCII == "bytes" else { return nil }
    let halves = words[1].parts(at: "/")
    guard halves.count == 2 else { return nil }
    total = Self.number(halves[1])
    if total == nil && halves[1] != "*" { return nil }
    if halves[0] == "*" {
      guard total != nil else { return nil }
      bytes = nil
      return
    }
    let ends = halves[0].parts(at: "-")
    guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]),
      first <= last, last < total ?? .max
    else { return nil }
    bytes = first..<last + 1
  }

  /// Reads decimal digits only: `Int64` itself would accept a sign.
  package static func number(_ text: Substring) -> Int64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ 48...57 ~= $0 }) else { return nil }
    return Int64(text)
  }
}
