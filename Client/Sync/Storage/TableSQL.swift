import FerryPlatform

/// The statement that created a table, as far as SQLite has no pragma for a part of it; pure.
///
/// ```swift
/// TableSQL("CREATE TABLE t(a REFERENCES p DEFERRABLE INITIALLY DEFERRED)").deferred  // [true]
/// ```
struct TableSQL {
  /// The words outside of quotation marks and comments, in upper case.
  private let words: [String]

  init(_ sql: String) { words = Self.words(of: sql) }

  /// Whether keywords follow each other in the statement. SQLite permits reserved words as names only in
  /// quotation marks.
  func has(_ keywords: String...) -> Bool {
    words.indices.contains { words[$0...].starts(with: keywords) }
  }

  /// Whether each foreign key is deferred, in the order of the statement.
  var deferred: [Bool] {
    var deferred: [Bool] = []
    for (index, word) in words.enumerated() {
      if word == "REFERENCES" { deferred.append(false) }
      guard word == "DEFERRABLE", !deferred.isEmpty else { continue }
      let isNot = index > 0 && words[index - 1] == "NOT"
      let next = words.dropFirst(index + 1).prefix(2)
      deferred[deferred.count - 1] = !isNot && next.elementsEqual(["INITIALLY", "DEFERRED"])
    }
    return deferred
  }

  private static func words(of sql: String) -> [String] {
    var words: [String] = []
    var rest = Array(sql.utf8)[...]
    while let byte = rest.first {
      let length: Int
      switch byte {
      case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"): length = end(of: byte, rest)
      case UInt8(ascii: "["): length = end(of: UInt8(ascii: "]"), rest)
      case UInt8(ascii: "-") where rest.starts(with: "--".utf8):
        length = rest.firstIndex(of: UInt8(ascii: "\n")).map { $0 - rest.startIndex } ?? rest.count
      case UInt8(ascii: "/") where rest.starts(with: "/*".utf8): length = commentLength(rest)
      case _ where isWord(byte):
        length = rest.firstIndex { !isWord($0) }.map { $0 - rest.startIndex } ?? rest.count
        words.append(String(decoding: rest.prefix(length), as: UTF8.self).uppercasedASCII)
      default: length = 1
      }
      rest = rest.dropFirst(length)
    }
    return words
  }

  /// Returns the length up to the closing mark. A doubled mark begins another quotation.
  private static func end(of mark: UInt8, _ rest: ArraySlice<UInt8>) -> Int {
    rest.dropFirst().firstIndex(of: mark).map { $0 - rest.startIndex + 1 } ?? rest.count
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
