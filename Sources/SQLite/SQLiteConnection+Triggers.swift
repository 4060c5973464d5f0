import CFerrySQLite
import Foundation

/// Users' triggers beside triggers that have to see the rows removed by REPLACE.
///
/// Delete triggers fire for these rows only with `recursive_triggers`. But with it, a trigger with
/// a write to its own table, such as a time of change, fires itself again until SQLite fails. The
/// setting takes effect when a statement is compiled. So it is off for statements that replace no
/// rows.
extension SQLiteConnection {
  /// Fires users' triggers as SQLite does by default, in statements that replace no rows: no
  /// trigger fires itself. The connection has a guard and `recursive_triggers` then.
  ///
  /// Compiled statements are forgotten when the schema changes (``forgetStatements()``): SQLite
  /// compiles them again with the setting of the connection.
  package func fireTriggersByDefault() { keeper?.firesTriggersByDefault = true }

  /// Compiles the first statement of a text. Returns it with the number of bytes.
  func compileForTriggers(
    _ text: String
  ) throws(SQLiteError) -> (statement: OpaquePointer?, consumed: Int) {
    let keeper = owner.map(\.keeper) ?? keeper
    keeper?.triggers = []
    keeper?.writtenTables = []
    let first = try compile(text)
    guard let keeper, !keeper.triggers.isEmpty else { return first }
    let (triggers, tables) = (keeper.triggers, keeper.writtenTables)
    let noted = keeper.tables
    defer { keeper.tables = noted }
    do {
      if try mayReplace(text.utf8.prefix(first.consumed), triggers, tables) { return first }
      setRecursiveTriggers(false)
      defer { setRecursiveTriggers(true) }
      let second = try compile(text)
      sqlite3_finalize(first.statement)
      return second
    } catch {
      sqlite3_finalize(first.statement)
      throw error as? SQLiteError ?? SQLiteError(code: SQLITE_ERROR, message: "\(error)", sql: text)
    }
  }

  private func compile(
    _ text: String
  ) throws(SQLiteError) -> (statement: OpaquePointer?, consumed: Int) {
    var statement: OpaquePointer?
    var consumed = 0
    keeper?.tables = SQLiteStatement.Tables()
    let code = text.withCString { start in
      var tail: UnsafePointer<CChar>?
      let code = sqlite3_prepare_v3(handle, start, -1, 0, &statement, &tail)
      consumed = tail.map { $0 - start } ?? text.utf8.count
      return code
    }
    guard code == SQLITE_OK else { throw error(code, sql: text) }
    return (statement, consumed)
  }

  /// Sets the setting without a run of the pragma, after which SQLite would compile all statements
  /// again. Should a version of SQLite set it only then, the pragma is run.
  private func setRecursiveTriggers(_ isOn: Bool) {
    let sql = "PRAGMA recursive_triggers=\(isOn ? 1 : 0)"
    var pragma: OpaquePointer?
    guard sqlite3_prepare_v2(handle, sql, -1, &pragma, nil) == SQLITE_OK else { return }
    defer { sqlite3_finalize(pragma) }
    if isOn, !hasRecursiveTriggers { sqlite3_step(pragma) }
  }

  private var hasRecursiveTriggers: Bool {
    var state: OpaquePointer?
    sqlite3_prepare_v2(handle, "PRAGMA recursive_triggers", -1, &state, nil)
    defer { sqlite3_finalize(state) }
    return sqlite3_step(state) == SQLITE_ROW && sqlite3_column_int(state, 0) == 1
  }

  /// Returns `true` if a statement, one of its triggers, or a written table may replace rows.
  private func mayReplace(
    _ sql: some Collection<UInt8>, _ triggers: Set<String>, _ tables: Set<String>
  ) throws -> Bool {
    if ReplaceWord.isIn(sql) { return true }
    var definitions: [String: [UInt8]] = [:]
    var schemas = ["sqlite_schema"]
    // A query of the temporary schema would create it.
    if hasDatabase("temp") { schemas.append("sqlite_temp_schema") }
    for schema in schemas {
      let found = try statement("SELECT sql FROM \(schema) WHERE name = ?1 COLLATE NOCASE")
      for name in triggers.union(tables) {
        let texts = try found.rows(name) { [UInt8]($0.textBytes(0)) }
        for text in texts { definitions[name, default: []] += text }
      }
    }
    // SQLite also names common table expressions, which no schema has. Attached files are not
    // searched.
    let hasAttached = try exists("SELECT 1 FROM pragma_database_list WHERE seq > 1")
    guard !hasAttached || triggers.allSatisfy({ definitions[$0] != nil }) else { return true }
    return definitions.values.contains { ReplaceWord.isIn($0) }
  }

  private func hasDatabase(_ name: String) -> Bool { sqlite3_db_readonly(handle, name) >= 0 }
}

/// The word REPLACE in SQL, of a conflict clause and not of a function; pure.
enum ReplaceWord {
  private static let word = Array("replace".utf8)

  /// Returns `true` if a text has the word outside of texts, quoted names and comments.
  static func isIn(_ sql: some Collection<UInt8>) -> Bool {
    let bytes = Array(sql)
    var place = 0
    while place + word.count <= bytes.count {
      if let end = endOfQuoted(bytes, at: place) {
        place = end
        continue
      }
      let end = place + word.count
      defer { place += 1 }
      guard zip(bytes[place..<end], word).allSatisfy({ $0 | 0x20 == $1 }),
        place == 0 || !isLetter(bytes[place - 1]), end == bytes.count || !isLetter(bytes[end])
      else { continue }
      let next = bytes[end...].first { !isBlank($0) }
      if next != UInt8(ascii: "(") { return true }
    }
    return false
  }

  /// Returns the end of a text, a quoted name or a comment that begins at a place; `nil` if none
  /// does. One without an end goes to the end of the SQL.
  private static func endOfQuoted(_ bytes: [UInt8], at start: Int) -> Int? {
    let rest = bytes[start...]
    let end: [UInt8]
    switch bytes[start] {
    case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"): end = [bytes[start]]
    case UInt8(ascii: "["): end = [UInt8(ascii: "]")]
    case _ where rest.starts(with: "--".utf8): end = [UInt8(ascii: "\n")]
    case _ where rest.starts(with: "/*".utf8): end = Array("*/".utf8)
    default: return nil
    }
    // A doubled quotation mark ends a text and begins the next one.
    var place = start + (end.count == 2 ? 2 : 1)
    while place < bytes.count {
      if bytes[place...].starts(with: end) { return place + end.count }
      place += 1
    }
    return bytes.count
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...:
      true
    default: false
    }
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0D).contains(byte)
  }
}
