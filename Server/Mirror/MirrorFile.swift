import FerryPersistence
import FerryProtocol
import FerrySQLite

/// A mirror's tables of its own in the file of its replica. Triggers note there which rows a table
/// in PostgreSQL may not have.
struct MirrorFile: Sendable {
  let plan: MirrorPlan

  private static func quoted(_ name: String) -> String { MirrorSQL.quoted(name) }

  private static func noted(_ table: MirrorTable) -> String {
    quoted("mirror.changed.\(table.name)")
  }

  private static func keys(_ table: MirrorTable, _ row: String) -> String {
    table.key.map { row + quoted($0.name.text) }.joined(separator: ", ")
  }

  private static func matches(_ table: MirrorTable, _ row: String) -> String {
    table.key.map { "\(quoted($0.name.text)) = \(row)\(quoted($0.name.text))" }
      .joined(separator: " AND ")
  }

  // MARK: Preparing

  /// Makes the tables and the triggers that are absent. All rows of a table whose trigger was absent
  /// count as changed.
  func prepare(_ database: Database) throws {
    try database.execute(
      """
      CREATE TABLE IF NOT EXISTS "mirror.turn"(
        one INTEGER PRIMARY KEY CHECK (one = 1), turn INTEGER NOT NULL,
        done INTEGER NOT NULL, file TEXT NOT NULL);
      INSERT OR IGNORE INTO "mirror.turn" VALUES (1, 1, 0, lower(hex(randomblob(16))));
      CREATE TABLE IF NOT EXISTS "mirror.read"(xid TEXT PRIMARY KEY, id INTEGER NOT NULL);
      """)
    for table in plan.tables { try prepare(table, database) }
  }

  private func prepare(_ table: MirrorTable, _ database: Database) throws {
    let (noted, keys) = (Self.noted(table), Self.keys(table, ""))
    try database.execute(
      """
      CREATE TABLE IF NOT EXISTS \(noted)(\(keys), turn INTEGER NOT NULL, PRIMARY KEY(\(keys)))
      WITHOUT ROWID
      """)
    let events = [("INSERT", ["NEW."]), ("DELETE", ["OLD."]), ("UPDATE", ["OLD.", "NEW."])]
    var isComplete = true
    for (event, rows) in events {
      let name = "mirror.\(event.lowercased()).\(table.name)"
      let known = try database.query(
        "SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name = ?", [.text(name)])
      if !known.isEmpty { continue }
      isComplete = false
      // An OR clause of the writing statement would replace one here.
      let body = rows.map { row in
        """
        DELETE FROM \(noted) WHERE \(Self.matches(table, row));
        INSERT INTO \(noted) SELECT \(Self.keys(table, row)), turn FROM "mirror.turn";
        """
      }
      try database.execute(
        """
        CREATE TRIGGER \(Self.quoted(name)) AFTER \(event) ON \(Self.quoted(table.name.text)) BEGIN
        \(body.joined(separator: "\n")) END
        """)
    }
    if !isComplete { try noteAll(table, database) }
  }

  /// Adds columns that the schema has and the replica's tables lack.
  func addColumns(_ database: Database) throws {
    for table in plan.tables {
      let rows = try database.query(
        "SELECT name FROM pragma_table_info(?)", [.text(table.name.text)])
      for column in table.columns
      where !rows.contains(where: { $0["name"] == .text(column.name.text) }) {
        try database.execute(
          """
          ALTER TABLE \(Self.quoted(table.name.text))
          ADD COLUMN \(Self.quoted(column.name.text)) \(column.affinity.rawValue)
          """)
      }
    }
  }

  private func noteAll(_ table: MirrorTable, _ database: Database) throws {
    try database.execute("DELETE FROM \(Self.noted(table))")
    try database.execute(
      """
      INSERT INTO \(Self.noted(table)) SELECT \(Self.keys(table, "")), turn
      FROM \(Self.quoted(table.name.text)), "mirror.turn"
      """)
  }

  /// Notes one row as changed, so that the table in PostgreSQL gets it again.
  func note(_ table: MirrorTable, _ key: [Value], _ database: Database) throws {
    let marks = table.key.map { _ in "?" }.joined(separator: ", ")
    try database.execute(
      """
      INSERT OR REPLACE INTO \(Self.noted(table)) SELECT \(marks), turn FROM "mirror.turn"
      """, key)
  }

  // MARK: Changed rows

  /// Identifies the file.
  func identifier(_ database: Database) throws -> String {
    guard
      case .text(let text)? = try database.query("SELECT file FROM \"mirror.turn\"").first?[
        "file"]
    else { return "" }
    return text
  }

  func hasChanges(_ database: Database) throws -> Bool {
    for table in plan.tables
    where try !database.query("SELECT 1 FROM \(Self.noted(table)) LIMIT 1").isEmpty { return true }
    return false
  }

  /// Begins a step, and returns its turn: the changes before it are those of the step.
  func beginTurn(_ database: Database) throws -> Int64 {
    try database.execute("UPDATE \"mirror.turn\" SET turn = turn + 1")
    return try turn(database)
  }

  private func turn(_ database: Database) throws -> Int64 {
    try integer("turn", database)
  }

  /// Returns the turn of the last step that has ended.
  func ended(_ database: Database) throws -> Int64 { try integer("done", database) }

  private func integer(_ column: String, _ database: Database) throws -> Int64 {
    guard
      case .integer(let number)? = try database.query("SELECT \(column) FROM \"mirror.turn\"")
        .first?[column]
    else { return 0 }
    return number
  }

  /// Passes each row that has changed before a turn, table by table, parents first.
  func changes(
    before turn: Int64, _ connection: SQLiteConnection, _ body: (MirrorRow) throws -> Void
  ) throws {
    for (place, table) in plan.tables.enumerated() {
      let on = table.key.map { "t.\(Self.quoted($0.name.text)) = d.\(Self.quoted($0.name.text))" }
      try read(
        place, table,
        from: "\(Self.noted(table)) d LEFT JOIN \(Self.quoted(table.name.text)) t ON "
          + on.joined(separator: " AND ") + " WHERE d.turn < \(turn)", key: "d.", connection, body)
    }
  }

  /// Passes each row of a table.
  func rows(
    of place: Int, _ connection: SQLiteConnection, _ body: (MirrorRow) throws -> Void
  ) throws {
    let table = plan.tables[place]
    try read(
      place, table, from: "\(Self.quoted(table.name.text)) t", key: "t.", connection, body)
  }

  private func read(
    _ place: Int, _ table: MirrorTable, from source: String, key: String,
    _ connection: SQLiteConnection, _ body: (MirrorRow) throws -> Void
  ) throws {
    let columns = table.columns.map { "t." + Self.quoted($0.name.text) }
    let first = "t." + Self.quoted(table.key[0].name.text)
    let list = ([Self.keys(table, key), "\(first) IS NOT NULL"] + columns).joined(separator: ", ")
    var failure: (any Error)?
    try connection.forEach("SELECT \(list) FROM \(source)") { row in
      guard failure == nil else { return }
      let keys = table.key.indices.map { row.value(Int32($0)) }
      let width = Int32(keys.count)
      let values =
        row.int64(width) == 1
        ? table.columns.indices.map { row.value(width + 1 + Int32($0)) } : nil
      do { try body(MirrorRow(table: place, key: keys, values: values)) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Ends a step: the tables in PostgreSQL have its rows.
  func endTurn(_ turn: Int64, _ database: Database) throws {
    for table in plan.tables {
      try database.execute("DELETE FROM \(Self.noted(table)) WHERE turn < ?", [.integer(turn)])
    }
    try database.execute("UPDATE \"mirror.turn\" SET done = ?", [.integer(turn)])
  }

  // MARK: Captured writes

  /// Returns the writes that the file has, and that PostgreSQL may still keep.
  func read(_ database: Database) throws -> [String: Int64] {
    var found: [String: Int64] = [:]
    for row in try database.query("SELECT xid, id FROM \"mirror.read\"") {
      guard case .text(let xid) = row["xid"], case .integer(let id) = row["id"] else { continue }
      found[xid] = id
    }
    return found
  }

  func forgetRead(_ database: Database) throws {
    try database.execute("DELETE FROM \"mirror.read\"")
  }

  func noteRead(_ read: [String: Int64], _ database: Database) throws {
    for (xid, id) in read {
      try database.execute(
        "INSERT OR REPLACE INTO \"mirror.read\" VALUES (?, ?)", [.text(xid), .integer(id)])
    }
  }

  /// Makes captured writes in the replica. A write that fails stops no other one: its row returns
  /// to PostgreSQL as the space has it.
  ///
  /// - Parameter checksEach: whether foreign keys are checked after each write instead of at the end.
  /// - Returns: The writes that failed, with the reason.
  func take(
    _ captured: CapturedWrites, _ database: Database, checksEach: Bool = false
  ) throws -> [(CapturedWrite, String)] {
    if !checksEach { try database.execute("PRAGMA defer_foreign_keys = ON") }
    var failed: [(CapturedWrite, String)] = []
    var left = captured.writes
    // A write may need a later one, such as that of its parent.
    repeat {
      failed = []
      for write in left {
        do { try take(write, database) } catch { failed.append((write, "\(error)")) }
      }
      if failed.count == left.count { break }
      left = failed.map(\.0)
    } while checksEach && !left.isEmpty
    for (write, _) in failed {
      guard let table = plan.table(write.table), let key = try? table.values(ofKey: write.key)
      else { continue }
      try note(table, key, database)
    }
    try noteRead(captured.read, database)
    return failed
  }

  /// Makes a captured write in the replica, which sends it as an operation of its own.
  func take(_ write: CapturedWrite, _ database: Database) throws {
    guard let table = plan.table(write.table) else { return }
    let key = try table.values(ofKey: write.key)
    let name = Self.quoted(table.name.text)
    let matches = table.key.map { "\(Self.quoted($0.name.text)) = ?" }.joined(separator: " AND ")
    let columns = write.names.compactMap { table.column(Name($0)) }
    guard columns.count == write.names.count else {
      throw MirrorFault(description: "table \(table.name) has lost a column")
    }
    let values = try zip(columns, write.values).map { try $0.value(of: $1) }
    switch write.kind {
    case .delete: try database.execute("DELETE FROM \(name) WHERE \(matches)", key)
    case .insert:
      let names = (table.key + columns).map { Self.quoted($0.name.text) }
      let marks = names.map { _ in "?" }.joined(separator: ", ")
      let sets = columns.map {
        "\(Self.quoted($0.name.text)) = excluded.\(Self.quoted($0.name.text))"
      }
      let action = sets.isEmpty ? "NOTHING" : "UPDATE SET " + sets.joined(separator: ", ")
      try database.execute(
        """
        INSERT INTO \(name)(\(names.joined(separator: ", "))) VALUES (\(marks))
        ON CONFLICT(\(Self.keys(table, ""))) DO \(action)
        """, key + values)
    case .update:
      guard
        let row = try database.query("SELECT * FROM \(name) WHERE \(matches)", key).first
      else {
        throw MirrorFault(description: "the space has deleted the record")
      }
      let former = try zip(columns, write.former).map { try $0.value(of: $1) }
      let merged = zip(zip(columns, values), former).map { column, old in
        column.0.merged(column.1, over: row[column.0.name.text], from: old)
      }
      let sets = columns.map { "\(Self.quoted($0.name.text)) = ?" }.joined(separator: ", ")
      try database.execute("UPDATE \(name) SET \(sets) WHERE \(matches)", merged + key)
    }
  }
}

extension MirrorColumn {
  /// Returns the value that a write leaves. Its author had not seen the present value if that differs
  /// from the former one: then amounts and lines are added to it.
  func merged(_ value: Value, over present: Value, from former: Value) -> Value {
    if present == former { return value }
    switch (policy, value, present, former) {
    case (.counter, .integer(let new), .integer(let now), .integer(let old)):
      let (change, isOver) = new.subtractingReportingOverflow(old)
      let (sum, isOverToo) = now.addingReportingOverflow(change)
      return isOver || isOverToo ? value : .integer(sum)
    case (.textMerge, _, _, _):
      return TextMerge.merge(original: former, value, present) ?? value
    default: return value
    }
  }
}
