import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerryMirror

/// Retries of unsent rows that devices have changed meanwhile, without PostgreSQL: each amount counts
/// once, and no line is lost.
@Suite("Changes of unsent rows", .hangLimit)
struct UnsentChangeTests {
  /// A mirror's file with the space's row, to which devices have added 5 and a line. The table has 60
  /// and a line of a program.
  private struct Stage {
    let folder = try? TemporaryDirectory()
    let database: LocalDatabase
    let file: MirrorFile
    private let ledger: SQLiteConnection

    init(refused operations: String = "") async throws {
      let path = try #require(folder).file("mirror.db").path
      ledger = try SQLiteConnection(path: path)
      try ledger.execute(
        """
        CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, title TEXT UNIQUE, n INTEGER, body TEXT);
        CREATE TABLE ferry_quarantine(seq INTEGER PRIMARY KEY, entry INTEGER, tbl TEXT, record TEXT,
          kind TEXT, data TEXT, was TEXT, marks TEXT, code TEXT, detail TEXT, holder TEXT, reason TEXT);
        CREATE TABLE ferry_operations(
          seq INTEGER PRIMARY KEY, tbl TEXT, record TEXT, kind TEXT, state INTEGER);
        CREATE TABLE ferry_refresh(tbl TEXT, record TEXT);
        CREATE TABLE ferry_names(tbl TEXT, col TEXT, first TEXT);
        INSERT INTO tasks VALUES ('t', 'one', 105, 'device\na\nb\n'), ('other', 'two', 0, '')
        """)
      if !operations.isEmpty { try ledger.execute(operations) }
      database = try await LocalDatabase.open(path)
      var schema = SpaceSchema.empty
      schema.tables["tasks"] = TableRules(
        columns: ["n": ColumnRules(policy: .counter), "body": ColumnRules(policy: .textMerge)],
        definition: DeclaredTable(
          key: "id",
          columns: [
            DeclaredColumn("title", .text), DeclaredColumn("n", .integer),
            DeclaredColumn("body", .text),
          ]))
      let file = MirrorFile(
        plan: try MirrorPlan(schema).adopting([
          "tasks": MirrorAdoption(columns: ["title", "n", "body"])
        ]))
      self.file = file
      try await database.write { database in
        try database.connection.addFunction("change_author", argumentCount: 0, callers: .all) {
          $1.setNull()
        }
        try file.prepare(database)
        try file.endTurn(try file.beginTurn(database), database)
      }
    }

    /// Changes the space's row, as a pull does.
    func pull(_ statement: String) async throws {
      try await database.write { try $0.execute(single: statement) }
    }

    /// Changes Ferry's own tables, as the replica does.
    func change(_ statements: String) throws { try ledger.execute(statements) }

    func apply(_ writes: CapturedWrite...) async throws -> [FailedWrite] { try await apply(writes) }

    /// Applies writes in one transaction of the replica.
    func apply(_ writes: [CapturedWrite]) async throws -> [FailedWrite] {
      let file = file
      return try await database.write { database in
        let taking = MirrorTaking(
          file: file, database: database,
          refused: try file.refusedRows(in: writes, database.connection))
        return try taking.apply(CapturedWrites(writes: writes))
      }
    }

    /// Returns the amount and the text, and whether the table gets the row again.
    func row() async throws -> [Value] {
      let file = file
      return try await database.write { database in
        let isNoted = try file.isNoted(file.plan.tables[0], ["t"], database.connection)
        try file.endTurn(try file.beginTurn(database), database)
        let rows = try database.query("SELECT n, body FROM tasks WHERE id = 't'")
        return rows.flatMap { [$0["n"], $0["body"]] } + [.integer(isNoted ? 1 : 0)]
      }
    }

    /// Returns the amount and the text.
    func content() async throws -> [Value] { Array(try await row().prefix(2)) }

    func isEmpty() async throws -> Bool {
      try await database.write { try !UnsentChanges(database: $0).hasAny() }
    }
  }

  private static func update(
    _ id: Int64, _ names: [String], from former: [String], to values: [String]
  ) -> CapturedWrite {
    CapturedWrite(
      id: id, tries: 0, transaction: "\(id)", table: "tasks", kind: .update, key: ["t"],
      names: names, values: values, former: former)
  }

  /// The whole row of the table.
  private static func row(
    _ id: Int64, _ kind: CapturedWrite.Kind = .slice, _ amount: Int? = 60, title: String = "one",
    isRetry: Bool = true
  ) -> CapturedWrite {
    var write = CapturedWrite(
      id: id, tries: 0, transaction: "\(id)", table: "tasks", kind: kind, key: ["t"],
      names: ["title", "n", "body"], values: [title, amount.map { "\($0)" }, "a\nb\nprogram\n"])
    write.isRetry = isRetry
    return write
  }

  /// A refused operation on the row.
  ///
  /// - Parameter names: of the amount and the text in the space.
  private static func operation(
    _ seq: Int, _ kind: String = "update", amount: Int = -40, entry: Int = 4,
    names: (amount: String, text: String) = ("n", "body")
  ) -> String {
    """
    INSERT INTO ferry_quarantine(seq, entry, tbl, record, kind, data, was, marks)
    VALUES (\(seq), \(entry), 'tasks', 't', '\(kind)',
      '{"\(names.amount)":\(amount),"\(names.text)":"a\\nb\\nprogram\\n"}',
      '{"\(names.amount)":100,"\(names.text)":"a\\nb\\n"}',
      '["+\(names.amount)","~\(names.text)"]');
    """
  }

  private static let merged: [Value] = [65, "device\na\nb\nprogram\n"]
  private static let table: [Value] = [60, "a\nb\nprogram\n"]

  @Test("a retried row adds the refused changes, in the quarantine or after it, and only once")
  func refused() async throws {
    for isDiscarded in [false, true] {
      let stage = try await Stage(refused: Self.operation(11))
      let file = stage.file
      if isDiscarded {
        // A kill comes between the two steps, and they come again.
        for _ in 0..<2 { try await stage.database.write { try file.recordRefused([4], $0) } }
        try stage.change("DELETE FROM ferry_quarantine")
      }
      #expect(try await stage.apply(Self.row(1)).isEmpty)
      #expect(try await stage.row() == Self.merged + [1])
      // The step has passed over the row: it is listed as unsent with the entry.
      try await stage.database.write { try file.recordRefused([4], $0) }
      try stage.change("DELETE FROM ferry_quarantine")
      #expect(try await stage.isEmpty() == isDiscarded)
      if !isDiscarded {
        #expect(try await stage.apply(Self.row(2)).isEmpty)
        #expect(try await stage.row() == Self.merged + [1])
      }
      // A repair of the space by hand, or a slice, is the table's row.
      #expect(try await stage.apply(Self.row(3, isRetry: false)).isEmpty)
      #expect(try await stage.content() == Self.table)
      await stage.database.close()
    }
  }

  @Test("refused changes of columns that the company has renamed count as the others")
  func renamed() async throws {
    let stage = try await Stage(
      refused: Self.operation(11, names: ("balance", "log"))
        + "INSERT INTO ferry_names VALUES ('tasks', 'n', 'balance'), ('tasks', 'body', 'log')")
    #expect(try await stage.apply(Self.row(1)).isEmpty)
    #expect(try await stage.row() == Self.merged + [1])
    // The company has dropped one.
    let file = stage.file
    let values = try await stage.database.write { database in
      try MirrorRecords(file.plan, database.connection).values(
        ["title": "two", "balance": 7, "dropped": 1], in: file.plan.tables[0])
    }
    #expect(values == ["title": "two", "n": 7])
    await stage.database.close()
  }

  @Test("several refused transactions on a row add up, beside accepted ones")
  func several() async throws {
    let stage = try await Stage(refused: Self.operation(11, amount: -30))
    let file = stage.file
    try await stage.database.write { try file.recordRefused([4], $0) }
    try stage.change("DELETE FROM ferry_quarantine; " + Self.operation(12, amount: -10, entry: 5))
    #expect(try await stage.apply(Self.update(1, ["n"], from: ["60"], to: ["70"])).isEmpty)
    #expect(try await stage.apply(Self.row(2, .slice, 70)).isEmpty)
    #expect(try await stage.content() == [75, Self.merged[1]])
    await stage.database.close()
  }

  @Test("a row whose transaction was sent again keeps the space's values")
  func sentAgain() async throws {
    let stage = try await Stage(refused: Self.operation(11))
    let file = stage.file
    try await stage.database.write { try file.recordSentAgain(4, $0) }
    try stage.change("DELETE FROM ferry_quarantine")
    try await stage.pull("UPDATE tasks SET n = 65, body = 'device\na\nb\nprogram\n'")
    #expect(try await stage.apply(Self.row(1)).isEmpty)
    #expect(try await stage.row() == Self.merged + [1])
    await stage.database.close()
  }

  @Test("a row with refused values, until its record is fetched, keeps what devices have added")
  func awaited() async throws {
    let stage = try await Stage(
      refused: Self.operation(11) + "INSERT INTO ferry_refresh VALUES ('tasks', 't')")
    try await stage.pull("UPDATE tasks SET n = 65, body = 'device\na\nb\nprogram\n' WHERE id = 't'")
    #expect(try await stage.apply(Self.row(1)).isEmpty)
    #expect(try await stage.row() == Self.merged + [1])
    // The fetched record lacks them; the operation is still in the quarantine.
    try stage.change("DELETE FROM ferry_refresh")
    try await stage.pull("UPDATE tasks SET n = 105, body = 'device\na\nb\n' WHERE id = 't'")
    #expect(try await stage.apply(Self.row(2)).isEmpty)
    #expect(try await stage.content() == Self.merged)
    await stage.database.close()
  }

  @Test("an update that fails in the file counts with the retry, also beside further ones")
  func failedUpdate() async throws {
    let stage = try await Stage()
    let names = ["title", "n", "body"]
    let failing = Self.update(
      1, names, from: ["one", "100", "a\nb\n"], to: ["two", "60", "a\nb\nprogram\n"])
    #expect(try await stage.apply(failing).count == 1)
    #expect(try await stage.apply(Self.row(2, title: "two")).count == 1)
    #expect(try await stage.apply(Self.update(3, ["n"], from: ["60"], to: ["70"])).isEmpty)
    #expect(try await stage.content()[0] == 115)
    try await stage.pull("DELETE FROM tasks WHERE id = 'other'")
    #expect(try await stage.apply(Self.row(4, .slice, 70, title: "two")).isEmpty)
    #expect(try await stage.content() == [75, Self.merged[1]])
    #expect(try await stage.isEmpty())
    await stage.database.close()
  }

  @Test(
    "the table's row counts if the space may lack more than changes",
    arguments: ["unknown", "insert", "delete", "slice", "beside", "null", "overflow"])
  func whole(_ story: String) async throws {
    var operations = ["insert", "delete"].contains(story) ? Self.operation(11, story) : ""
    if story == "overflow" { operations = Self.operation(11, amount: .max) }
    if story == "null" { operations = Self.operation(11) }
    let stage = try await Stage(refused: operations)
    var writes = [Self.row(3, .slice, story == "null" ? nil : 60)]
    switch story {
    case "slice":
      // The first one has never reached the space.
      #expect(try await stage.apply(Self.row(1, title: "two", isRetry: false)).count == 1)
      let failing = Self.update(2, ["title", "n"], from: ["one", "100"], to: ["two", "60"])
      #expect(try await stage.apply(failing).count == 1)
    case "beside":
      // One transaction of the replica has both writes.
      writes.insert(Self.update(2, ["n"], from: ["100"], to: ["60"]), at: 0)
    default: break
    }
    let failed = try await stage.apply(writes)
    #expect(failed.isEmpty)
    let row = try await stage.row()
    #expect(row[0] == (story == "null" ? .null : 60))
    #expect(row[1] == (["null", "overflow"].contains(story) ? Self.merged[1] : Self.table[1]))
    await stage.database.close()
  }

  @Test("the amounts of a deleted row do not count for the row inserted after it")
  func deleted() async throws {
    let stage = try await Stage(
      refused: Self.operation(11) + "INSERT INTO ferry_refresh VALUES ('tasks', 't')")
    let file = stage.file
    #expect(try await stage.apply(Self.row(1, .delete, isRetry: false)).isEmpty)
    #expect(try await stage.apply(Self.row(2, .insert, 500, isRetry: false)).isEmpty)
    for (state, expected) in [(3, []), (0, [4])] as [(Int, Set<Int64>)] {
      // A refused delete has not reached the space.
      try stage.change(
        "INSERT OR REPLACE INTO ferry_operations VALUES (12, 'tasks', 't', 'delete', \(state))")
      let replaced = try await stage.database.write {
        try file.replacedEntries($0.connection)
      }
      #expect(replaced == expected)
    }
    // A device adds 5, and the row is listed as unsent.
    try stage.change("DELETE FROM ferry_refresh")
    try await stage.pull("UPDATE tasks SET n = 505 WHERE id = 't'")
    try await stage.database.write { try file.recordRefused([4], $0) }
    try stage.change("DELETE FROM ferry_quarantine")
    #expect(try await stage.apply(Self.row(3, .slice, 500)).isEmpty)
    #expect(try await stage.content() == [505, Self.table[1]])
    await stage.database.close()
  }

  @Test("recorded changes get the name of a column that the company renames later")
  func renamedLater() async throws {
    let stage = try await Stage(refused: Self.operation(11))
    let file = stage.file
    let names = try await stage.database.write { database in
      try file.recordRefused([4], database)
      try UnsentChanges(database: database).rename("n", of: "tasks", to: "amount")
      return try database.query("SELECT col FROM \"mirror.lacking\" ORDER BY col").map { $0["col"] }
    }
    #expect(names == ["amount", "body"])
    await stage.database.close()
  }

  @Test("a deleted or inserted row forgets the changes of the one before")
  func forgotten() async throws {
    for kind in [CapturedWrite.Kind.delete, .insert] {
      let stage = try await Stage(refused: Self.operation(11))
      let file = stage.file
      try await stage.database.write { try file.recordRefused([4], $0) }
      try stage.change("DELETE FROM ferry_quarantine")
      #expect(try await stage.apply(Self.row(1, kind, isRetry: false)).isEmpty)
      #expect(try await stage.isEmpty())
      await stage.database.close()
    }
  }
}
