import FerryProtocol

/// The statement to create a table or an index again under another name; pure. All else stays, byte
/// for byte: the copy stores rows as the original does.
///
/// ```swift
/// ShadowSQL("CREATE TABLE t(a REFERENCES t(b), b)").table("t", as: "s", parents: ["t": "s"])
/// // CREATE TABLE "s"(a REFERENCES "s"(b), b)
/// ```
struct ShadowSQL {
  private let bytes: [UInt8]
  private let tokens: [SQLToken]

  /// - Parameter sql: the statement as kept in SQLite's schema.
  init(_ sql: String) {
    bytes = Array(sql.utf8)
    tokens = SQLToken.all(in: bytes)
  }

  /// Returns the statement of a copy of a table; `nil` if a foreign key refers to a table without a
  /// copy, or the statement is another one.
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
    return replacing(names.merging(qualifiers(of: local, as: copy)) { one, _ in one })
  }

  /// Returns the places at which expressions have the name of their table before a column: `t.a`.
  private func qualifiers(of local: Name, as copy: Name) -> [Int: Name] {
    let places = tokens.indices.dropLast().filter {
      tokens[$0 + 1].bytes.elementsEqual(".".utf8) && isName($0, local)
    }
    return Dictionary(uniqueKeysWithValues: places.map { ($0, copy) })
  }

  /// Returns the statement of the same index of a table's copy; `nil` if the statement is another one.
  func index(of local: Name, as copy: Name, on table: Name) -> String? {
    let start =
      words(0..<2) == ["CREATE", "UNIQUE"] ? ["CREATE", "UNIQUE", "INDEX"] : ["CREATE", "INDEX"]
    let place = start.count
    guard words(0..<place) == start, words(place + 1..<place + 2) == ["ON"],
      isName(place + 2, local)
    else { return nil }
    return replacing(
      [place: copy, place + 2: table].merging(qualifiers(of: local, as: table)) { one, _ in one })
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
}
