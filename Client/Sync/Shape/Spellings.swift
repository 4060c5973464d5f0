import FerryProtocol
import FerrySQLite

/// The space's known names of this device's tables and columns, and the names that SQLite treats as
/// equal to another one here: `is_shared` and `ferry_clashes` (SPEC.md §23).
struct Spellings {
  let connection: SQLiteConnection

  // MARK: Names known to the space

  /// Returns true if the space knows a tracked table by this name.
  func isShared(_ table: Name) throws -> Bool {
    try connection.exists("SELECT 1 FROM ferry_tables WHERE name = ? AND is_shared <> 0", table)
  }

  /// Returns true if the space knows a recorded column by this name.
  func isShared(_ column: Name, of table: Name) throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM ferry_columns WHERE tbl = ? AND name = ? AND is_shared <> 0", table, column)
  }

  /// Returns the recorded columns unknown to the space.
  func unsharedColumns(of table: Name) throws -> Set<Name> {
    Set(
      try connection.rows("SELECT name FROM ferry_columns WHERE tbl = ? AND is_shared = 0", table) {
        $0.name(0)
      })
  }

  /// Records names sent by the space.
  func share(_ table: Name, _ columns: Set<Name>) throws {
    try connection.run("UPDATE ferry_tables SET is_shared = 1 WHERE name = ?", table)
    for column in columns.sorted() {
      try connection.run(
        "UPDATE ferry_columns SET is_shared = 1 WHERE tbl = ? AND name = ?", table, column)
    }
  }

  /// Records the names of operations about to be sent: an insert names all columns.
  func share(_ operations: [SyncOperation]) throws {
    var last: Name?
    for table in operations.lazy.map(\.key.table) where table != last {
      last = table
      try connection.run(
        "UPDATE ferry_tables SET is_shared = 1 WHERE name = ? AND is_shared = 0", table)
      try connection.run(
        "UPDATE ferry_columns SET is_shared = 1 WHERE tbl = ? AND is_shared = 0", table)
    }
  }

  // MARK: Other spellings

  /// Uses the space's spelling of a table, if the space does not know the one here.
  func rename(table: Name, to new: Name) throws {
    try connection.run(
      "UPDATE ferry_tables SET name = ?2, is_shared = 1 WHERE name = ?1", table, new)
    for ledger in [
      "ferry_columns", "ferry_operations", "ferry_batch_rows", "ferry_keys", "ferry_refresh",
    ] {
      // text: names of Ferry's own tables
      try connection.run("UPDATE OR REPLACE \(ledger) SET tbl = ?2 WHERE tbl = ?1", table, new)
    }
  }

  /// Uses the space's spelling of a column, if the space does not know the one here. Waiting
  /// operations use it, too.
  func rename(_ column: Name, of table: Name, to new: Name) throws {
    try connection.run(
      """
      UPDATE OR REPLACE ferry_columns SET name = ?3, is_shared = 1 WHERE tbl = ?1 AND name = ?2
      """, table, column, new)
    let operations = try connection.rows(
      "SELECT seq, data, was, marks FROM ferry_operations WHERE tbl = ? AND kind <> 'batch'", table
    ) { row in
      let texts: [[UInt8]?] = [Int32(1), 2, 3].map { index in
        row.isNull(index) ? nil : [UInt8](row.textBytes(index))
      }
      return (seq: row.int64(0), texts: texts)
    }
    let renaming = RecordedNames(from: column, to: new)
    for operation in operations {
      let texts = operation.texts.map { $0.map(renaming.apply) }
      guard texts != operation.texts else { continue }
      try connection.run(
        "UPDATE ferry_operations SET data = ?2, was = ?3, marks = ?4 WHERE seq = ?1",
        operation.seq, texts[0].map { SQLiteText($0) }, texts[1].map { SQLiteText($0) },
        texts[2].map { SQLiteText($0) })
    }
  }

  /// Returns true if a waiting batch may name a column.
  func hasBatch(in table: Name) throws -> Bool {
    try connection.exists(
      "SELECT 1 FROM ferry_operations WHERE tbl = ? AND kind = 'batch' LIMIT 1", table)
  }

  // MARK: Clashes

  /// Records a name of the space that differs in case from another known name of the space.
  func addClash(_ column: Name, of table: Name) throws {
    try connection.run(
      """
      INSERT OR IGNORE INTO ferry_clashes(tbl, col)
      SELECT ?1, ?2 WHERE (SELECT count(*) FROM ferry_clashes) < \(SpellingsFound.countMax)
      """, table, column)
  }

  func clashes() throws -> [(table: Name, column: Name)] {
    try connection.rows("SELECT tbl, col FROM ferry_clashes ORDER BY tbl, col") {
      ($0.name(0), $0.name(1))
    }
  }
}

/// A column's name in the JSON of recorded operations; pure.
///
/// A quotation mark within a text has a backslash before it, and only the outermost object has
/// several members. So a name is found by the bytes around it.
struct RecordedNames {
  private let rules: [(from: [UInt8], to: [UInt8])]

  init(from: Name, to: Name) {
    rules = [("", ":"), ("+", ""), ("~", "")].map { mark, end in
      (Self.quoted(mark, from) + Array(end.utf8), Self.quoted(mark, to) + Array(end.utf8))
    }
  }

  private static func quoted(_ mark: String, _ name: Name) -> [UInt8] {
    var json = JSONWriter()
    json.string(name)
    return [UInt8(ascii: "\"")] + mark.utf8 + json.finish().dropFirst()
  }

  /// Returns an object of columns, or a list of marked names, with the other name.
  func apply(_ json: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var place = 0
    while place < json.count {
      let isMember =
        place == 1 || place > 1 && json[place - 1] == UInt8(ascii: ",")
      if isMember, let rule = rules.first(where: { json[place...].starts(with: $0.from) }) {
        result += rule.to
        place += rule.from.count
      } else {
        result.append(json[place])
        place += 1
      }
    }
    return result
  }
}
