import FerryCryptography
import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerrySyncClient

/// A mirror's own tables in the file of the replica. Triggers record there which rows a table in
/// PostgreSQL may not have.
struct MirrorFile: Sendable {
  let plan: MirrorPlan

  static func noted(_ table: MirrorTable) -> String {
    quoted(Name("mirror.changed.\(table.name)"))
  }

  static func keys(_ table: MirrorTable, _ row: String) -> String {
    table.key.map { row + quoted($0.name) }.joined(separator: ", ")
  }

  /// The columns with the key of a changed row. A table's own names could be any word.
  private static func notedKeys(_ table: MirrorTable) -> [String] {
    table.key.indices.map { "k\($0)" }
  }

  private static func matches(_ table: MirrorTable, _ row: String) -> String {
    zip(notedKeys(table), table.key).map { "\($0) = \(row)\(quoted($1.name))" }
      .joined(separator: " AND ")
  }

  /// A condition: an update changes what PostgreSQL has of a row. A pull writes once more what a
  /// program has written.
  private static func isChanged(_ table: MirrorTable) -> String {
    let names = (table.key + table.columns).map { quoted($0.name) }
    // The column's own collation may take different texts for equal.
    let old = names.map { "OLD.\($0) COLLATE BINARY" }
    let new = names.map { "NEW.\($0)" }
    return "(\(old.joined(separator: ", "))) IS NOT (\(new.joined(separator: ", ")))"
  }

  /// Returns `true` if a trigger's statement looks at each column of a table. It may look at others,
  /// which a program has dropped since.
  private static func watches(_ table: MirrorTable, _ statement: Name?) -> Bool {
    guard let statement = statement?.text else { return false }
    return table.all.allSatisfy {
      statement.has("OLD.\(quoted($0.name)) COLLATE BINARY")
    }
  }

  /// A condition: each update counts.
  static let isAny = "TRUE"

  // MARK: Preparing

  /// Creates the missing tables of adopted ones, without unique values: the company's database
  /// decides which row has one. Foreign keys need some of them.
  static func createTables(
    _ adopted: [Name], of schema: SpaceSchema, _ database: Database
  ) throws {
    let references = schema.tables.values.flatMap { $0.definition?.references ?? [] }
    for name in adopted {
      guard var table = schema.tables[name]?.definition,
        try database.query(
          "SELECT 1 FROM pragma_table_list WHERE schema = 'main' AND name = ?",
          [.text(name.text)]
        ).isEmpty
      else { continue }
      table.unique.removeAll { columns in
        !references.contains { $0.table == name && Set($0.to) == Set(columns) }
      }
      for statement in table.statements(name: name, local: { ($0, $1) }) {
        try database.execute(single: statement)
      }
    }
  }

  /// Creates the missing tables and triggers. All rows of a table without a trigger count as
  /// changed.
  func prepare(_ database: Database) throws {
    try database.execute(
      """
      CREATE TABLE IF NOT EXISTS "mirror.turn"(
        one INTEGER PRIMARY KEY CHECK (one = 1), turn INTEGER NOT NULL,
        done INTEGER NOT NULL, file TEXT NOT NULL,
        quiet INTEGER NOT NULL DEFAULT 0);
      INSERT OR IGNORE INTO "mirror.turn"(one, turn, done, file)
        VALUES (1, 1, 0, lower(hex(randomblob(16))));
      CREATE TABLE IF NOT EXISTS "mirror.read"(
        xid TEXT PRIMARY KEY, tries INTEGER NOT NULL, id INTEGER NOT NULL);
      CREATE TABLE IF NOT EXISTS "mirror.later"(id INTEGER PRIMARY KEY);
      CREATE TABLE IF NOT EXISTS "mirror.unsent"(
        tab TEXT NOT NULL, key TEXT NOT NULL, reason TEXT NOT NULL, retry INTEGER NOT NULL,
        gone INTEGER NOT NULL, holder TEXT, answer TEXT, PRIMARY KEY(tab, key));
      CREATE TABLE IF NOT EXISTS "mirror.dropped"(
        tab TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY(tab, record)) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS "mirror.replaced"(seq INTEGER PRIMARY KEY);
      \(UnsentChanges.tables)
      """)
    for table in plan.tables { try prepare(table, database) }
  }

  private func prepare(_ table: MirrorTable, _ database: Database) throws {
    let (noted, keys) = (Self.noted(table), Self.notedKeys(table))
    // SQLite searches the key only for values of the key's own affinity, and reads the whole table
    // otherwise.
    let columns = zip(keys, table.key).map { "\($0) \($1.affinity.sql()) NOT NULL, " }
    try database.execute(
      single: """
        CREATE TABLE IF NOT EXISTS \(noted)(
          \(columns.joined())turn INTEGER NOT NULL, author TEXT, PRIMARY KEY(\(keys.joined(separator: ", "))))
        WITHOUT ROWID
        """)
    var isComplete = true
    for event in ["INSERT", "DELETE", "UPDATE"] {
      let wanted = Self.trigger(event, table, Self.isChanged(table))
      let known = try Self.trigger(event, of: table, in: database)
      if known == Name(wanted) { continue }
      // A trigger of other columns has passed over changes of these.
      if known != Name(Self.trigger(event, table, Self.isAny)), !Self.watches(table, known) {
        isComplete = false
      }
      try database.execute(
        single: "DROP TRIGGER IF EXISTS \(quoted(Self.name(ofTrigger: event, table)))")
      try database.execute(single: wanted)
    }
    if !isComplete { try markAll(table, database) }
  }

  static func name(ofTrigger event: String, _ table: MirrorTable) -> Name {
    // text: the event is one of three words
    Name("mirror.\(event.lowercased()).\(table.name)")
  }

  /// Returns the statement of an existing trigger, to compare it by bytes; `nil` if there is none.
  static func trigger(
    _ event: String, of table: MirrorTable, in database: Database
  ) throws -> Name? {
    let rows = try database.query(
      "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?",
      [.text(name(ofTrigger: event, table).text)])
    guard case .text(let sql)? = rows.first?["sql"] else { return nil }
    return Name(sql)
  }

  /// - Parameter condition: of the updates that count.
  static func trigger(
    _ event: String, _ table: MirrorTable, _ condition: String
  ) -> String {
    let rows = ["INSERT": ["NEW."], "DELETE": ["OLD."]][event] ?? ["OLD.", "NEW."]
    // An OR clause of the writing statement would replace one here.
    let body = rows.map { row in
      """
      DELETE FROM \(noted(table)) WHERE \(matches(table, row))
        AND (SELECT quiet FROM "mirror.turn") = 0;
      INSERT INTO \(noted(table)) SELECT \(keys(table, row)), turn, change_author()
        FROM "mirror.turn" WHERE quiet = 0;
      """
    }
    return """
      CREATE TRIGGER \(quoted(name(ofTrigger: event, table)))
      AFTER \(event) ON \(quoted(table.name))
      \(event == "UPDATE" ? "WHEN \(condition) " : "")BEGIN
      \(body.joined(separator: "\n")) END
      """
  }

  /// Marks all rows as changed. Deleted ones that are marked stay so.
  private func markAll(_ table: MirrorTable, _ database: Database) throws {
    try database.execute(
      single: """
        INSERT OR REPLACE INTO \(Self.noted(table)) SELECT \(Self.keys(table, "t.")), m.turn, NULL
        FROM \(quoted(table.name)) AS t, "mirror.turn" AS m
        """)
  }

  /// Marks one row as changed, so the table in PostgreSQL gets it again. A change that the table
  /// lacks keeps the author: programs' triggers see the name.
  func mark(_ table: MirrorTable, _ key: [Value], _ database: Database) throws {
    let marks = table.key.map { _ in "?" }.joined(separator: ", ")
    try database.execute(
      repeated: """
        INSERT INTO \(Self.noted(table)) SELECT \(marks), turn, NULL FROM "mirror.turn" WHERE TRUE
        ON CONFLICT DO UPDATE SET turn = excluded.turn
        """, key)
  }

  /// Marks one row as changed, beside any replica.
  func mark(_ table: MirrorTable, _ key: [Value], _ connection: SQLiteConnection) throws {
    let marks = table.key.map { _ in "?" }.joined(separator: ", ")
    try connection.run(
      "INSERT OR REPLACE INTO \(Self.noted(table)) SELECT \(marks), turn, NULL FROM \"mirror.turn\"",
      SQLiteList(key))
  }

  /// Forgets changes of rows that had a number for devices' records alone: PostgreSQL has never had
  /// them.
  func unmark(_ number: Int64, of mapped: Name, _ database: Database) throws {
    for table in plan.tables {
      for (place, column) in table.key.enumerated() {
        let isOwn = table.isMapped && table.name == mapped
        guard isOwn || plan.mapped(table, column.name) == mapped else { continue }
        try database.execute(
          single: """
            DELETE FROM \(Self.noted(table)) WHERE k\(place) = ? AND NOT EXISTS (
              SELECT 1 FROM \(quoted(table.name)) t WHERE \(Self.matches(table, "t.")))
            """, [.integer(number)])
      }
    }
  }

  /// Sets whether the next writes change rows to what PostgreSQL has already.
  func setQuiet(_ isQuiet: Bool, _ database: Database) throws {
    try database.execute(
      repeated: "UPDATE \"mirror.turn\" SET quiet = ?", [.integer(isQuiet ? 1 : 0)])
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

  /// - Parameter waiting: tables whose changes do not travel yet.
  func hasChanges(except waiting: Set<Name> = [], _ database: Database) throws -> Bool {
    for table in plan.tables where !waiting.contains(table.name) {
      let rows = try database.query("SELECT 1 FROM \(Self.noted(table)) LIMIT 1")
      if !rows.isEmpty { return true }
    }
    return false
  }

  /// Begins a step, and returns the turn: the changes before it are those of the step.
  func beginTurn(_ database: Database) throws -> Int64 {
    try database.execute("UPDATE \"mirror.turn\" SET turn = turn + 1")
    return try turn(database)
  }

  /// Returns the turn of the last begun step.
  func turn(_ database: Database) throws -> Int64 { try integer("turn", database) }

  /// Returns `true` if a row has changed since the last step.
  func isNoted(
    _ table: MirrorTable, _ key: [String?], _ connection: SQLiteConnection
  ) throws -> Bool {
    let conditions = Self.notedKeys(table).map { "\($0) = ?" }
    let found = try connection.first(
      "SELECT 1 FROM \(Self.noted(table)) WHERE \(conditions.joined(separator: " AND "))",
      SQLiteList(try table.values(ofKey: key))
    ) { $0.int64(0) }
    return found != nil
  }

  /// Begins later steps after a turn.
  func skip(to turn: Int64, _ database: Database) throws {
    try database.execute("UPDATE \"mirror.turn\" SET turn = max(turn, ?)", [.integer(turn)])
  }

  /// Returns the turn of the last ended step.
  func ended(_ database: Database) throws -> Int64 { try integer("done", database) }

  private func integer(_ column: String, _ database: Database) throws -> Int64 {
    guard
      case .integer(let number)? = try database.query("SELECT \(column) FROM \"mirror.turn\"")
        .first?[column]
    else { return 0 }
    return number
  }

  /// Passes each row changed before a turn, table by table, parents first. Deleted rows come last,
  /// children first: PostgreSQL would delete a child along with its former parent.
  ///
  /// - Parameter waiting: tables whose changes do not travel yet.
  func changes(
    before turn: Int64, except waiting: Set<Name> = [], _ connection: SQLiteConnection,
    _ body: (MirrorRow) throws -> Void
  ) throws {
    let tables = plan.tables.enumerated().filter { !waiting.contains($1.name) }
    for (place, table) in tables {
      try changes(place, table, "t.\(Self.first(table)) IS NOT NULL", turn, connection, body)
    }
    for (place, table) in tables.reversed() {
      try changes(place, table, "t.\(Self.first(table)) IS NULL", turn, connection, body)
    }
  }

  private static func first(_ table: MirrorTable) -> String { quoted(table.key[0].name) }

  private func changes(
    _ place: Int, _ table: MirrorTable, _ condition: String, _ turn: Int64,
    _ connection: SQLiteConnection, _ body: (MirrorRow) throws -> Void
  ) throws {
    let keys = Self.notedKeys(table).map { "d.\($0)" }
    let on = zip(keys, table.key).map { "t.\(quoted($1.name)) = \($0)" }
    let order = try hasSeveralAuthors(table, connection) ? " ORDER BY d.author" : ""
    try read(
      place, table,
      from: "\(Self.noted(table)) d LEFT JOIN \(quoted(table.name)) t ON "
        + on.joined(separator: " AND ") + " WHERE d.turn < \(turn) AND \(condition)\(order)",
      keys: keys.joined(separator: ", "), withRecords: table.isMapped, author: "d.author",
      connection, body)
  }

  /// Passes each row of a table.
  func rows(
    of place: Int, _ connection: SQLiteConnection, _ body: (MirrorRow) throws -> Void
  ) throws {
    let table = plan.tables[place]
    try read(
      place, table, from: "\(quoted(table.name)) t", keys: Self.keys(table, "t."), connection, body)
  }

  private func read(
    _ place: Int, _ table: MirrorTable, from source: String, keys: String,
    withRecords: Bool = false, author: String = "NULL", _ connection: SQLiteConnection,
    _ body: (MirrorRow) throws -> Void
  ) throws {
    let columns = table.columns.map { "t." + quoted($0.name) }
    let first = "t." + Self.first(table)
    let record = """
      (SELECT n.record FROM ferry_keys n
        WHERE n.tbl = \(quoted(literal: table.name.text)) AND n.number = \(keys))
      """
    let rest = [withRecords ? record : "NULL", author]
    let list = ([keys, "\(first) IS NOT NULL"] + columns + rest).joined(separator: ", ")
    var failure: (any Error)?
    try connection.forEach("SELECT \(list) FROM \(source)") { row in
      guard failure == nil else { return }
      let keys = table.key.indices.map { row.value(Int32($0)) }
      let width = Int32(keys.count)
      let values =
        row.int64(width) == 1
        ? table.columns.indices.map { row.value(width + 1 + Int32($0)) } : nil
      var found = MirrorRow(table: place, key: keys, values: values)
      found.record = row.optionalText(width + 1 + Int32(columns.count))
      found.device = row.optionalText(width + 2 + Int32(columns.count))
      do { try body(found) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Ends a step: the tables in PostgreSQL have these rows.
  ///
  /// - Parameter waiting: tables whose changes the step has left to a later one.
  func endTurn(
    _ turn: Int64, except waiting: Set<Name> = [], _ database: Database
  ) throws {
    for table in plan.tables where !waiting.contains(table.name) {
      try database.execute(
        single: "DELETE FROM \(Self.noted(table)) WHERE turn < ?", [.integer(turn)])
    }
    try database.execute("UPDATE \"mirror.turn\" SET done = ?", [.integer(turn)])
  }
}

extension MirrorColumn {
  /// Returns the value after a write. If the present value differs from the former one, the write's
  /// author had not seen it: then amounts and lines are added to it.
  func merged(_ value: Value, over present: Value, from former: Value) -> Value {
    present == former ? value : added(value, over: present, from: former) ?? value
  }

  /// Returns the present value with a write's amount or lines; `nil` if they cannot be added.
  func added(_ value: Value, over present: Value, from former: Value) -> Value? {
    switch (policy, value, present, former) {
    case (.counter, .integer(let new), .integer(let now), .integer(let old)):
      let (change, isOver) = new.subtractingReportingOverflow(old)
      let (sum, isOverToo) = now.addingReportingOverflow(change)
      return isOver || isOverToo ? nil : .integer(sum)
    case (.textMerge, _, _, _): return TextMerge.merge(original: former, value, present)
    default: return nil
    }
  }
}
