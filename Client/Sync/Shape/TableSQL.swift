/// The CREATE TABLE statement of a table, for the parts without a pragma of SQLite; pure.
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

  /// Returns true if keywords follow each other in the statement. SQLite permits reserved words as
  /// names only in quotation marks.
  func has(_ keywords: String...) -> Bool {
    words.indices.contains { words[$0...].starts(with: keywords) }
  }

  /// True for each deferred foreign key, in the order of the statement.
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
