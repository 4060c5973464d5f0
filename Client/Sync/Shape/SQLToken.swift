import FerryPlatform
import FerryProtocol

/// A word, a quoted text, or one other character of a statement in SQL; pure.
///
/// ```swift
/// SQLToken.all(in: Array("CREATE TABLE \"t\"(a)".utf8)).map(\.word)  // ["CREATE", "TABLE", "", "", "A", ""]
/// ```
struct SQLToken {
  /// The place in the statement.
  let bytes: ArraySlice<UInt8>

  /// The word in upper case; empty for all else.
  var word: String {
    guard let first = bytes.first, Self.isWord(first) else { return "" }
    return String(decoding: bytes, as: UTF8.self).uppercasedASCII
  }

  /// The token as a name, folded.
  var name: Name {
    guard let mark = bytes.first, !Self.isWord(mark) else {
      return Name(String(decoding: bytes, as: UTF8.self)).folded
    }
    var inner: [UInt8] = []
    var isDoubled = false
    for byte in bytes.dropFirst().dropLast() {
      isDoubled = byte == mark && !isDoubled
      if !isDoubled { inner.append(byte) }
    }
    return Name(String(decoding: inner, as: UTF8.self)).folded
  }

  /// Returns the tokens of a statement, in order, without blanks and comments.
  static func all(in bytes: [UInt8]) -> [SQLToken] {
    var tokens: [SQLToken] = []
    var rest = bytes[...]
    while let byte = rest.first {
      let length: Int
      switch byte {
      case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"):
        length = quotedLength(rest, byte)
      case UInt8(ascii: "["):
        length =
          rest.firstIndex(of: UInt8(ascii: "]")).map { $0 - rest.startIndex + 1 } ?? rest.count
      case UInt8(ascii: "-") where rest.starts(with: "--".utf8):
        rest = rest.drop { $0 != UInt8(ascii: "\n") }
        continue
      case UInt8(ascii: "/") where rest.starts(with: "/*".utf8):
        rest = rest.dropFirst(commentLength(rest))
        continue
      case _ where isWord(byte): length = rest.prefix(while: isWord).count
      case _ where byte == 0x20 || (0x09...0x0D).contains(byte):
        rest = rest.dropFirst()
        continue
      default: length = 1
      }
      tokens.append(SQLToken(bytes: rest.prefix(length)))
      rest = rest.dropFirst(length)
    }
    return tokens
  }

  /// Returns the length of a quotation. A doubled mark is a part of it.
  private static func quotedLength(_ rest: ArraySlice<UInt8>, _ mark: UInt8) -> Int {
    var index = rest.startIndex + 1
    while index < rest.endIndex {
      if rest[index] == mark {
        guard index + 1 < rest.endIndex, rest[index + 1] == mark else {
          return index - rest.startIndex + 1
        }
        index += 1
      }
      index += 1
    }
    return rest.count
  }

  private static func commentLength(_ rest: ArraySlice<UInt8>) -> Int {
    var index = rest.startIndex + 2
    while index + 1 < rest.endIndex {
      if rest[index] == UInt8(ascii: "*"), rest[index + 1] == UInt8(ascii: "/") {
        return index + 2 - rest.startIndex
      }
      index += 1
    }
    return rest.count
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...:
      true
    default: false
    }
  }
}
