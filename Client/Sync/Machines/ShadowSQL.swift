import FerryPlatform
import FerryProtocol

/// The statement that creates a table or an index again under another name; pure. All else stays, byte for
/// byte: the copy stores its rows as the original does.
///
/// ```swift
/// ShadowSQL("CREATE TABLE t(a REFERENCES t(b), b)").table("t", as: "s", parents: ["t": "s"])
/// // CREATE TABLE "s"(a REFERENCES "s"(b), b)
/// ```
struct ShadowSQL {
  /// A word, a quoted text, or one other character.
  private struct Token {
    let bytes: ArraySlice<UInt8>

    /// The word in upper case; empty for all else.
    var word: String {
      guard let first = bytes.first, ShadowSQL.isWord(first) else { return "" }
      return String(decoding: bytes, as: UTF8.self).uppercasedASCII
    }

    /// The name that the token is, folded.
    var name: Name {
      guard let mark = bytes.first, !ShadowSQL.isWord(mark) else {
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
  }

  private let bytes: [UInt8]
  private let tokens: [Token]

  /// - Parameter sql: the statement as SQLite keeps it in its schema.
  init(_ sql: String) {
    bytes = Array(sql.utf8)
    tokens = Self.tokens(of: bytes)
  }

  /// Returns the statement of a copy of a table; `nil` if a foreign key refers to a table without a copy, or
  /// the statement is another one.
  ///
  /// - Parameter parents: the names of the copies, by the folded names of their tables.
  func table(_ local: Name, as copy: Name, parents: [Name: Name]) -> String? {
    guard words(0..<2) == ["CREATE", "TABLE"], isName(2, local) else { return nil }
    var names = [2: copy]
    for index in tokens.indices.dropFirst(3) where tokens[index].word == "REFERENCES" {
      guard index + 1 < tokens.count, let parent = parents[tokens[index + 1].name] else {
        return nil
      }
      names[index + 1] = parent
    }
    return replacing(names)
  }

  /// Returns the statement of the same index of a table's copy; `nil` if the statement is another one.
  func index(of local: Name, as copy: Name, on table: Name) -> String? {
    let start =
      words(0..<2) == ["CREATE", "UNIQUE"] ? ["CREATE", "UNIQUE", "INDEX"] : ["CREATE", "INDEX"]
    let place = start.count
    guard words(0..<place) == start, words(place + 1..<place + 2) == ["ON"],
      isName(place + 2, local)
    else { return nil }
    return replacing([place: copy, place + 2: table])
  }

  private func words(_ range: Range<Int>) -> [String] {
    range.upperBound <= tokens.count ? tokens[range].map(\.word) : []
  }

  private func isName(_ index: Int, _ name: Name) -> Bool {
    index < tokens.count && tokens[index].name == name.folded
  }

  private func replacing(_ names: [Int: Name]) -> String {
    var result: [UInt8] = []
    var place = bytes.startIndex
    for (index, name) in names.sorted(by: { $0.key < $1.key }) {
      let token = tokens[index].bytes
      result += bytes[place..<token.startIndex]
      // A keyword may be directly before a quoted name, and not before a plain one.
      result += Array((" " + quoted(name) + " ").utf8)
      place = token.endIndex
    }
    return String(decoding: result + bytes[place...], as: UTF8.self)
  }

  private static func tokens(of bytes: [UInt8]) -> [Token] {
    var tokens: [Token] = []
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
      tokens.append(Token(bytes: rest.prefix(length)))
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
