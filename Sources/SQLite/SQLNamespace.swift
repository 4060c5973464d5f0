import FerryPlatform

/// Puts a number into a program's own names in SQL. So one file holds several sets of its tables,
/// and one connection several sets of its functions.
///
/// ```swift
/// let second = SQLNamespace(prefix: "ferry_", number: 2)
/// second.rewrite("DELETE FROM ferry_log WHERE event = 'ferry_log'")
/// // DELETE FROM ferry_2_log WHERE event = 'ferry_log'
/// ```
package struct SQLNamespace: Sendable, Hashable {
  /// The beginning of the program's own names: letters and underscores.
  package let prefix: String
  /// The number of the set. The first set has names without a number.
  package let number: Int

  package init(prefix: String, number: Int = 1) {
    (self.prefix, self.number) = (prefix, number)
  }

  /// The beginning of the set's names.
  package var ownPrefix: String { number == 1 ? prefix : "\(prefix)\(number)_" }

  /// Returns a name in the set. A name without the prefix is returned as it is.
  package func name(_ name: String) -> String {
    guard number != 1, let rest = name.rest(after: prefix) else { return name }
    return ownPrefix + rest
  }

  /// Returns SQL with the set's names. Texts, quoted names and comments stay as they are: they may
  /// contain a user's names. SQL with the set's names does not change.
  package func rewrite(_ sql: String) -> String {
    if number == 1 { return sql }
    let (prefix, own) = (Array(prefix.utf8), Array(ownPrefix.utf8))
    var rest = Array(sql.utf8)[...]
    var result: [UInt8] = []
    result.reserveCapacity(rest.count + 64)
    while let byte = rest.first {
      var length = 1
      if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
        length = Self.quotedLength(rest, byte)
      } else if rest.starts(with: "--".utf8) {
        length = rest.firstIndex(of: UInt8(ascii: "\n")).map { $0 - rest.startIndex } ?? rest.count
      } else if Self.isWord(byte) {
        length = rest.firstIndex { !Self.isWord($0) }.map { $0 - rest.startIndex } ?? rest.count
        let word = rest.prefix(length)
        if word.starts(with: prefix) && !word.starts(with: own) {
          result += own
          result += word.dropFirst(prefix.count)
          rest = rest.dropFirst(length)
          continue
        }
      }
      result += rest.prefix(length)
      rest = rest.dropFirst(length)
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// Returns the length of a text or a quoted name with the quotes. A doubled quote begins another
  /// one.
  private static func quotedLength(_ rest: ArraySlice<UInt8>, _ quote: UInt8) -> Int {
    let end = rest.dropFirst().firstIndex(of: quote)
    return end.map { $0 - rest.startIndex + 1 } ?? rest.count
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), 0x80...:
      true
    default: false
    }
  }
}
