/// The statement that created a table, as far as SQLite has no pragma for a part of it; pure.
///
/// ```swift
/// TableSQL("CREATE TABLE t(a REFERENCES p DEFERRABLE INITIALLY DEFERRED)").deferred  // [true]
/// ```
struct TableSQL {
  /// The words outside of quotation marks and comments, in upper case.
  private let words: [String]

  init(_ sql: String) {
    words = SQLToken.all(in: Array(sql.utf8)).map(\.word).filter { !$0.isEmpty }
  }

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
}
