import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerryMirror

/// Captured writes, made by a mirror in the mirror's file, without PostgreSQL.
@Suite("Taking of captured writes", .hangLimit)
struct MirrorTakingTests {
  private static func write(_ id: Int64, _ title: String) -> CapturedWrite {
    CapturedWrite(
      id: id, tries: 0, transaction: "7", table: "tasks", kind: .insert, key: ["t\(id)"],
      names: ["title"], values: [title])
  }

  private static func file(_ columns: [DeclaredColumn] = []) throws -> MirrorFile {
    var schema = SpaceSchema.empty
    schema.tables["tasks"] = TableRules(
      definition: DeclaredTable(key: "id", columns: [DeclaredColumn("title", .text)] + columns))
    return MirrorFile(plan: try MirrorPlan(schema))
  }

  /// Opens a database with the replica's function for the triggers: no device has written.
  private static func database(_ folder: TemporaryDirectory) async throws -> LocalDatabase {
    let database = try await LocalDatabase.open(folder.file("mirror.db").path)
    try await database.write {
      try $0.connection.addFunction("change_author", argumentCount: 0, callers: .all) {
        $1.setNull()
      }
    }
    return database
  }

  @Test("a transaction that is too large is recognised by its code, whatever its text")
  func tooManyWrites() {
    let (text, code) = ("the transaction writes more than 5", DatabaseError.tooManyWritesCode)
    let errors: [(any Error, Bool)] = [
      (DatabaseError("zu viel", code: code), true), (DatabaseError(text), false),
      (DatabaseError(text, code: DatabaseError.refusedCode), false), (TooManyWrites(), true),
    ]
    for (error, expected) in errors { #expect(error.isTooManyWrites == expected, "\(error)") }
  }

  @Test(
    "a refused transaction is noted row by row, as soon as the space's records are fetched")
  func refused() throws {
    let database = try SQLiteConnection(path: ":memory:")
    let file = try Self.file()
    try database.execute(
      """
      CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, title TEXT);
      INSERT INTO tasks VALUES ('one', 'x'), ('two', 'y');
      CREATE TABLE ferry_quarantine(seq INTEGER PRIMARY KEY, entry INTEGER, tbl TEXT, record TEXT,
        kind TEXT, code TEXT, detail TEXT, holder TEXT, reason TEXT);
      CREATE TABLE ferry_operations(seq INTEGER PRIMARY KEY, tbl TEXT, record TEXT, state INTEGER);
      INSERT INTO ferry_quarantine VALUES
        (11, 4, 'tasks', 'one', 'insert', 'code', 'taken', 'two', NULL),
        (12, 4, 'tasks', 'two', 'update', NULL, NULL, NULL, NULL),
        (13, 4, 'tasks', 'three', 'delete', NULL, NULL, NULL, 'the company refuses it');
      CREATE TABLE ferry_refresh(tbl TEXT, record TEXT);
      INSERT INTO ferry_refresh VALUES ('tasks', 'one')
      """)
    let others = [
      UnsentRow(
        table: "tasks", key: ["two"],
        reason: "the space refuses another row of the same transaction",
        canRetry: true),
      UnsentRow(
        table: "tasks", key: ["three"],
        reason: "the space refuses another row of the same transaction", canRetry: true,
        isGone: true, answer: "the company refuses it"),
    ]
    let before = try file.refused(database)
    #expect(before.rows == others && before.entries == [])
    // The space has no such record.
    try database.execute("DELETE FROM ferry_refresh; DELETE FROM tasks WHERE id = 'one'")
    var refused = UnsentRow(
      table: "tasks", key: ["one"], reason: "the space refuses it: taken", canRetry: false,
      holder: ["two"])
    let after = try file.refused(database)
    #expect(after.rows == [refused] + others && after.entries == [4])
    // A program has since written to it, or to the record with the unique value.
    for (record, state, canRetry) in [
      ("one", 0, true), ("two", 1, true), ("two", 3, false), ("three", 0, false),
    ] {
      try database.execute(
        "INSERT INTO ferry_operations VALUES (14, 'tasks', '\(record)', \(state))")
      refused.canRetry = canRetry
      #expect(try file.refused(database).rows == [refused] + others, "\(record) \(state)")
      try database.execute("DELETE FROM ferry_operations")
    }
  }

  @Test(
    "the reason of a write that the file refuses names the table and the columns",
    arguments: [
      (787, "FOREIGN KEY constraint failed", "insert", "it refers to a row of table lists"),
      (787, "FOREIGN KEY constraint failed", "delete", "rows of table notes refer to it"),
      (
        2_067, "UNIQUE constraint failed: tasks.list, tasks.title", "insert",
        "another row of table tasks has the same list, title"
      ),
      (
        1_299, "NOT NULL constraint failed: tasks.title", "insert",
        "column title of table tasks is required and is NULL"
      ),
      (
        2_067, "UNIQUE constraint failed: tasks.a, b.c, tasks.d", "insert",
        "another row of table tasks has the same a, b.c, d"
      ),
      (
        2_067, "UNIQUE constraint failed: index 'one'", "insert",
        "UNIQUE constraint failed: index 'one'"
      ),
      (275, "CHECK constraint failed: short", "insert", "CHECK constraint failed: short"),
    ])
  func reasons(code: Int32, message: String, kind: String, expected: String) throws {
    func refers(to table: Name, by column: Name) -> DeclaredTable {
      var declared = DeclaredTable(key: "id", columns: [DeclaredColumn(column, .text)])
      declared.references = [DeclaredReference([column], to: table)]
      return declared
    }
    var schema = SpaceSchema.empty
    schema.tables["lists"] = TableRules(definition: DeclaredTable(key: "id", columns: []))
    schema.tables["tasks"] = TableRules(definition: refers(to: "lists", by: "list"))
    schema.tables["notes"] = TableRules(definition: refers(to: "tasks", by: "task"))
    let file = MirrorFile(plan: try MirrorPlan(schema))
    var write = Self.write(1, "x")
    if kind == "delete" { write.kind = .delete }
    let reason = file.reason(DatabaseError(message, code: code), write)
    #expect(reason.hasPrefix(expected), "\(reason)")
  }

  @Test("a full disk ends the transaction, and no write counts as rejected or taken")
  func fullDisk() async throws {
    let folder = try TemporaryDirectory()
    let database = try await Self.database(folder)
    let file = try Self.file()
    try await database.write { database in
      try database.execute("CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, title TEXT)")
      try file.prepare(database)
    }
    let captured = CapturedWrites(
      writes: [
        Self.write(1, "small"), Self.write(2, String(repeating: "x", count: 1 << 20)),
        Self.write(3, "small too"),
      ])
    let error = await #expect(throws: DatabaseError.self) {
      try await database.write { database in
        try database.connection.execute("PRAGMA max_page_count = 30")
        _ = try MirrorTaking(file: file, database: database).apply(captured)
      }
    }
    #expect(error?.code == 13)
    try await database.write { database in
      #expect(try file.read(database).marks.isEmpty)
      #expect(try database.query("SELECT id FROM tasks").isEmpty)
      try database.connection.execute("PRAGMA max_page_count = 100000")
      #expect(try MirrorTaking(file: file, database: database).apply(captured).isEmpty)
      #expect(try database.query("SELECT id FROM tasks").count == 3)
    }
    await database.close()
  }

  @Test("only a write that changes a mirrored column of a row brings it to the table")
  func changed() async throws {
    let folder = try TemporaryDirectory()
    let database = try await Self.database(folder)
    let file = try Self.file()
    /// Returns whether a write leaves rows to bring, and brings them.
    func brings(_ file: MirrorFile, _ statement: String) async throws -> Bool {
      try await database.write { database in
        try file.prepare(database)
        try database.execute(statement)
        defer {
          #expect(throws: Never.self) { try file.endTurn(try file.beginTurn(database), database) }
        }
        return try file.hasChanges(database)
      }
    }
    try await database.write {
      try $0.execute(
        """
        CREATE TABLE tasks(
          id TEXT PRIMARY KEY NOT NULL, title TEXT COLLATE NOCASE, own TEXT, due TEXT)
        """)
    }
    #expect(try await brings(file, "INSERT INTO tasks VALUES ('t', 'one', 'mine', NULL)"))
    // As a pull does with what the server has from this replica.
    let again = """
      INSERT INTO tasks(id, title) VALUES ('t', 'one') ON CONFLICT(id) DO UPDATE SET title = excluded.title
      """
    #expect(try await !brings(file, again))
    #expect(try await !brings(file, "UPDATE tasks SET own = 'other'"))
    #expect(try await brings(file, "UPDATE tasks SET title = 'ONE'"))
    #expect(try await brings(file, "UPDATE tasks SET title = NULL"))
    #expect(try await !brings(file, "UPDATE tasks SET title = NULL"))
    // The schema has got a column.
    #expect(try await !brings(file, "UPDATE tasks SET due = 'today'"))
    let wider = try Self.file([DeclaredColumn("due", .text)])
    #expect(try await brings(wider, "UPDATE tasks SET due = 'tomorrow'"))
    #expect(try await brings(wider, "DELETE FROM tasks"))
    await database.close()
  }

  @Test("values that have waited for a column reach the table with the column")
  func waitedForColumn() async throws {
    let folder = try TemporaryDirectory()
    let database = try await Self.database(folder)
    let (file, wider) = (try Self.file(), try Self.file([DeclaredColumn("due", .text)]))
    try await database.write { database in
      try database.execute("CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, title TEXT)")
      try file.prepare(database)
      try database.execute("INSERT INTO tasks VALUES ('a', ''), ('b', '')")
      try file.endTurn(try file.beginTurn(database), database)
      try wider.addColumns(database)
      // A replica does this as soon as a table has the column.
      try database.execute("UPDATE tasks SET due = 'today' WHERE id = 'a'")
      try wider.prepare(database)
      let turn = try wider.beginTurn(database)
      var keys: [[Value]] = []
      try wider.changes(before: turn, database.connection) { keys.append($0.key) }
      #expect(keys == [["a"]])
    }
    await database.close()
  }

  @Test("rows that follow a program's write on devices, and not in PostgreSQL, reach the tables")
  func followers() async throws {
    let folder = try TemporaryDirectory()
    let database = try await Self.database(folder)
    var schema = SpaceSchema.empty
    schema.tables["lists"] = TableRules(
      definition: DeclaredTable(
        key: "id", columns: [DeclaredColumn("code", .text), DeclaredColumn("title", .text)],
        unique: [["code"]]))
    schema.tables["tasks"] = TableRules(
      definition: DeclaredTable(
        key: "id", columns: [DeclaredColumn("list", .text)],
        references: [DeclaredReference(["list"], to: "lists", ["code"], onUpdate: .cascade)]))
    let file = MirrorFile(plan: try MirrorPlan(schema))
    try await database.write { database in
      try database.execute(
        """
        CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, code TEXT UNIQUE, title TEXT);
        CREATE TABLE tasks(
          id TEXT PRIMARY KEY NOT NULL, list TEXT REFERENCES lists(code) ON UPDATE CASCADE);
        INSERT INTO lists VALUES ('l', 'home', ''); INSERT INTO tasks VALUES ('t', 'home');
        """)
      try file.prepare(database)
    }
    let cases: [(String, String, [[Value]])] = [
      ("title", "Home", []), ("code", "house", [["l"], ["t"]]),
    ]
    for (column, value, rows) in cases {
      try await database.write { database in
        try file.endTurn(try file.beginTurn(database), database)
        let write = CapturedWrite(
          id: 1, tries: 0, transaction: "7", table: "lists", kind: .update, key: ["l"],
          names: [column], values: [value], former: [nil])
        #expect(
          try MirrorTaking(file: file, database: database).apply(CapturedWrites(writes: [write]))
            .isEmpty)
        let turn = try file.beginTurn(database)
        var keys: [[Value]] = []
        try file.changes(before: turn, database.connection) { keys.append($0.key) }
        #expect(keys == rows, "\(column)")
      }
    }
    await database.close()
  }

  @Test("a failed update of a company's row stays listed although a later one succeeds")
  func laterUpdate() async throws {
    let folder = try TemporaryDirectory()
    let database = try await Self.database(folder)
    var schema = SpaceSchema.empty
    schema.tables["tasks"] = TableRules(
      definition: DeclaredTable(
        key: "id", columns: [DeclaredColumn("a", .text), DeclaredColumn("b", .text)],
        unique: [["a"]]))
    let file = MirrorFile(
      plan: try MirrorPlan(schema).adopting(["tasks": MirrorAdoption(columns: ["a", "b"])]))
    @Sendable func write(_ id: Int64, in transaction: String, _ column: String) -> CapturedWrite {
      CapturedWrite(
        id: id, tries: 0, transaction: transaction, table: "tasks", kind: .update, key: ["t"],
        names: [column], values: ["taken"], former: [nil])
    }
    try await database.write { database in
      try database.execute(
        """
        CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, a TEXT UNIQUE, b TEXT);
        INSERT INTO tasks VALUES ('other', 'taken', ''), ('t', 'mine', '');
        """)
      try file.prepare(database)
      for writes in [
        [write(1, in: "7", "a"), write(2, in: "8", "b")],
        [write(1, in: "7", "a"), write(2, in: "7", "b")],
      ] {
        _ = try MirrorTaking(file: file, database: database).apply(CapturedWrites(writes: writes))
        // The second transaction in a separate step.
        let read = try file.read(database)
        #expect(read.unsent.map(\.key) == [["t"]])
        #expect(read.unsent.map(\.holder) == [["other"]])
        try file.forgetRead(database)
      }
      _ = try MirrorTaking(file: file, database: database).apply(
        CapturedWrites(writes: [write(1, in: "7", "a")]))
      _ = try MirrorTaking(file: file, database: database).apply(
        CapturedWrites(writes: [write(2, in: "8", "b")]))
      #expect(try file.read(database).unsent.map(\.key) == [["t"]])
    }
    await database.close()
  }

  /// Creates a table with a counter, and a file for it.
  private static func counted(_ database: Database) throws -> MirrorFile {
    var schema = SpaceSchema.empty
    schema.tables["tasks"] = TableRules(
      columns: ["n": ColumnRules(policy: .counter)],
      definition: DeclaredTable(
        key: "id", columns: [DeclaredColumn("title", .text), DeclaredColumn("n", .integer)],
        unique: [["title"]]))
    let file = MirrorFile(
      plan: try MirrorPlan(schema).adopting(["tasks": MirrorAdoption(columns: ["title", "n"])]))
    try database.execute(
      "CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, title TEXT UNIQUE, n INTEGER)")
    try file.prepare(database)
    return file
  }

  /// Returns an answer of PostgreSQL to a row.
  private static func answer(_ values: [String?]?, to former: [String?]?) -> CapturedWrite {
    var write = CapturedWrite(
      id: 1, tries: 0, transaction: "7", table: "tasks", kind: .answer, key: ["t"],
      names: ["title", "n"], values: values ?? [], former: former ?? [])
    (write.isAbsent, write.answersDelete) = (values == nil, former == nil)
    return write
  }

  @Test("an answer changes a row as far as it is the one that PostgreSQL has refused")
  func answers() async throws {
    let folder = try TemporaryDirectory()
    let database = try await Self.database(folder)
    // The row, the values of PostgreSQL, the refused values, and the row afterwards.
    let cases: [([Value]?, [String?]?, [String?]?, [[Value]])] = [
      (["bad", 5], ["good", "3"], ["bad", "5"], [["good", 3]]),
      (["better", 5], ["good", "3"], ["bad", "5"], [["better", 3]]),
      (["bad", 9], ["good", "3"], ["bad", "5"], [["good", 7]]),
      (["bad", 5], nil, ["bad", "5"], []), (["bad", 6], nil, ["bad", "5"], [["bad", 6]]),
      (nil, ["good", "3"], nil, [["good", 3]]), (["new", 1], ["good", "3"], nil, [["new", 1]]),
      (nil, ["good", "3"], ["bad", "5"], []),
      (["x\0", 5], ["good", "5"], [nil, "5"], [["good", 5]]),
    ]
    try await database.write { database in
      let file = try Self.counted(database)
      for (row, values, former, expected) in cases {
        try database.execute(single: "DELETE FROM tasks")
        if let row { try database.execute(single: "INSERT INTO tasks VALUES ('t', ?, ?)", row) }
        let writes = CapturedWrites(writes: [Self.answer(values, to: former)])
        #expect(try MirrorTaking(file: file, database: database).apply(writes).isEmpty)
        let found = try database.query("SELECT title, n FROM tasks").map { [$0["title"], $0["n"]] }
        #expect(found == expected, "\(String(describing: values)) \(String(describing: former))")
        #expect(try file.read(database).unsent.isEmpty)
      }
    }
    await database.close()
  }

  @Test("a record of a device that gives way comes before the program's write")
  func givesWay() async throws {
    let folder = try TemporaryDirectory()
    let database = try await Self.database(folder)
    try await database.write { database in
      let file = try Self.counted(database)
      try database.execute("INSERT INTO tasks VALUES ('other', 'one', 1)")
      let taking = MirrorTaking(file: file, database: database)
      let back = CapturedWrite(
        id: 0, tries: 0, transaction: "", table: "tasks", kind: .delete, key: ["other"])
      let failed = try taking.apply(
        CapturedWrites(writes: [Self.write(1, "one")]), after: [back])
      #expect(failed.isEmpty)
      #expect(try database.query("SELECT id FROM tasks").map { $0["id"] } == ["t1"])
      #expect(try file.read(database).marks.map(\.id) == [1])
    }
    await database.close()
  }

  @Test("a number in another form is no other value")
  func numbers() throws {
    let double = MirrorColumn(name: "n", affinity: .real, type: .double)
    let numeric = MirrorColumn(name: "n", affinity: .numeric, type: .numeric)
    let text = MirrorColumn(name: "n", affinity: .text, type: .numeric)
    #expect(double.isExact(.real(100), "100") && double.isExact(.real(1e20), "1e+20"))
    #expect(!double.isExact(.real(100), "100.5") && !double.isExact(.real(100), nil))
    #expect(numeric.isExact(.real(1.5), "1.50") && numeric.isExact(.integer(2), "2.00"))
    #expect(!numeric.isExact(.real(0.1), "0.10000000000000001"))
    #expect(!numeric.isExact(.real(0.1), "0.1" + String(repeating: "0", count: 40) + "1"))
    #expect(!text.isExact(.text("1.5"), "1.50") && text.isExact(.null, nil))
  }
}
