import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerryMirror
@testable import FerrySyncClient

/// Captured writes to rows of transactions that the space has refused, without PostgreSQL: no amount
/// counts twice.
@Suite("Rows of refused transactions", .hangLimit)
struct RefusedRowTests {
  /// A mirror's file with a row whose operation is refused.
  private struct Stage {
    let folder = try? TemporaryDirectory()
    let database: LocalDatabase
    let file: MirrorFile
    private let ledger: SQLiteConnection

    init(refused kind: String) async throws {
      let path = try #require(folder).file("mirror.db").path
      ledger = try SQLiteConnection(path: path)
      try ledger.execute(
        """
        CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, n INTEGER);
        CREATE TABLE ferry_quarantine(seq INTEGER PRIMARY KEY, entry INTEGER, tbl TEXT, record TEXT,
          kind TEXT, data TEXT, was TEXT, marks TEXT, code TEXT, detail TEXT, holder TEXT, reason TEXT);
        CREATE TABLE ferry_operations(
          seq INTEGER PRIMARY KEY, tbl TEXT, record TEXT, kind TEXT, state INTEGER);
        CREATE TABLE ferry_refresh(tbl TEXT, record TEXT);
        CREATE TABLE ferry_names(tbl TEXT, col TEXT, first TEXT);
        INSERT INTO tasks VALUES ('t', -73);
        INSERT INTO ferry_quarantine(seq, entry, tbl, record, kind, data, marks)
          VALUES (11, 4, 'tasks', 't', '\(kind)', '{"n":-73}', '["+n"]');
        INSERT INTO ferry_refresh VALUES ('tasks', 't')
        """)
      database = try await LocalDatabase.open(path)
      var schema = SpaceSchema.empty
      schema.tables["tasks"] = TableRules(
        columns: ["n": ColumnRules(policy: .counter)],
        definition: DeclaredTable(key: "id", columns: [DeclaredColumn("n", .integer)]))
      let file = MirrorFile(
        plan: try MirrorPlan(schema).adopting(["tasks": MirrorAdoption(columns: ["n"])]))
      self.file = file
      try await database.write { database in
        try database.connection.addFunction("change_author", argumentCount: 0, callers: .all) {
          $1.setNull()
        }
        try file.prepare(database)
      }
    }

    /// Changes Ferry's own tables, as the replica does.
    func change(_ statements: String) throws { try ledger.execute(statements) }
  }

  private static func update(_ id: Int64, from former: Int, to value: Int) -> CapturedWrite {
    CapturedWrite(
      id: id, tries: 0, transaction: "7", table: "tasks", kind: .update, key: ["t"],
      names: ["n"], values: ["\(value)"], former: ["\(former)"])
  }

  private static func slice(_ id: Int64, _ value: Int) -> CapturedWrite {
    CapturedWrite(
      id: id, tries: 0, transaction: "8", table: "tasks", kind: .slice, key: ["t"], names: ["n"],
      values: ["\(value)"])
  }

  private static func apply(
    _ write: CapturedWrite, _ file: MirrorFile, _ database: Database
  ) throws -> [FailedWrite] {
    let taking = MirrorTaking(
      file: file, database: database,
      refused: try file.refusedRows(in: [write], database.connection))
    return try taking.apply(CapturedWrites(writes: [write]))
  }

  private static func amounts(_ database: Database) throws -> [Value] {
    try database.query("SELECT n FROM tasks").map { $0["n"] }
  }

  @Test(
    "a write to a row whose insert is refused comes with the whole row, once the record is fetched")
  func refusedInsert() async throws {
    let stage = try await Stage(refused: "insert")
    let file = stage.file
    try await stage.database.write { database in
      for write in [Self.update(1, from: -73, to: -79), Self.slice(2, -79)] {
        // The space would add it to the next insert.
        let failed = try Self.apply(write, file, database)
        #expect(failed.map(\.canRetry) == [true], "\(write.kind)")
        #expect(try Self.amounts(database) == [-73])
        #expect(try file.read(database).unsent.map(\.key) == [["t"]])
      }
      try database.execute("DELETE FROM tasks")
    }
    try stage.change("DELETE FROM ferry_refresh")
    try await stage.database.write { database in
      let failed = try Self.apply(Self.slice(3, -79), file, database)
      #expect(try failed.isEmpty && Self.amounts(database) == [-79])
    }
    await stage.database.close()
  }

  @Test("a transaction of programs reads the quarantine alone, and not all operations of the file")
  func plan() throws {
    let connection = try SQLiteConnection(path: ":memory:")
    try connection.execute(ReplicaSchema.statements)
    try connection.execute("CREATE TABLE \"mirror.replaced\"(seq INTEGER PRIMARY KEY)")
    let steps = try connection.rows("EXPLAIN QUERY PLAN \(RefusedWrite.query)") { $0.text(3) }
    #expect(steps.contains { $0.hasPrefix("SCAN o USING INDEX ferry_operations_quarantined") })
    #expect(!steps.contains { $0 == "SCAN o" || $0 == "SCAN d" }, "\(steps)")
  }

  @Test("a row whose refused amounts are fetched in part stays out of the tables until the rest is")
  func awaitedRow() async throws {
    let stage = try await Stage(refused: "update")
    let file = stage.file
    @Sendable func keys(before turn: Int64, _ database: Database) throws -> [[Value]] {
      var keys: [[Value]] = []
      try file.changes(before: turn, database.connection) { keys.append($0.key) }
      return keys
    }
    try await stage.database.write { database in
      try database.execute("INSERT INTO tasks VALUES ('other', 1); UPDATE tasks SET n = n + 1")
      let first = try file.beginTurn(database)
      try file.postponeAwaited(database)
      #expect(try keys(before: first, database) == [["other"]])
      try file.endTurn(first, database)
    }
    try stage.change("DELETE FROM ferry_refresh")
    try await stage.database.write { database in
      let second = try file.beginTurn(database)
      try file.postponeAwaited(database)
      #expect(try keys(before: second, database) == [["t"]])
    }
    await stage.database.close()
  }

  @Test("a refused transaction is not sent again after a row of it has come whole")
  func wholeRow() async throws {
    let stage = try await Stage(refused: "update")
    let file = stage.file
    try await stage.database.write { database in
      // The replica has the refused amount, and loses it with the fetched record.
      #expect(try Self.apply(Self.update(1, from: -73, to: -79), file, database).isEmpty)
      #expect(try Self.apply(Self.slice(2, -79), file, database).isEmpty)
      #expect(try file.replacedEntries(database.connection) == [])
      try database.execute("UPDATE tasks SET n = -6")
    }
    try stage.change("DELETE FROM ferry_refresh")
    try await stage.database.write { database in
      #expect(try Self.apply(Self.update(3, from: -79, to: -80), file, database).isEmpty)
      #expect(try Self.amounts(database) == [-7])
      #expect(try file.replacedEntries(database.connection) == [])
      #expect(try Self.apply(Self.slice(4, -80), file, database).isEmpty)
      #expect(try Self.amounts(database) == [-80])
      let replaced = try file.replacedEntries(database.connection)
      #expect(replaced == [4])
    }
    // The next entry has other places in the queue.
    try stage.change("UPDATE ferry_quarantine SET seq = 12")
    try await stage.database.write { database in
      let replaced = try file.replacedEntries(database.connection)
      #expect(replaced == [])
    }
    await stage.database.close()
  }
}
