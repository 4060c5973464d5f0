import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Changes that wait for the local schema", .hangLimit)
struct KeptOrderTests {
  private let maker = PageMaker()

  @Test("deferred changes are read in the order of sequences, and those of one table by record")
  func order() throws {
    let fixture = try ReplicaFixture()
    try fixture.run("CREATE TABLE held(id TEXT PRIMARY KEY, n INTEGER CHECK (n < 5))")
    try fixture.file.track(["held"])
    try fixture.apply([
      maker.change(1, "late", "z", [Column("a", "1")]),
      maker.change(2, "held", "h", [Column("n", 9)]),
      maker.change(3, "other", "o", []), maker.change(4, "late", "a", [Column("b", "2")]),
    ])
    func records(_ choice: KeptChoice) throws -> [Name] {
      try fixture.file.kept.changes(choice, limit: 10).map(\.change.key.record)
    }
    #expect(try records(.all) == ["z", "h", "o", "a"])
    #expect(try records(.refused) == ["h"])
    #expect(try records(.ofTable("late")) == ["a", "z"])
    #expect(try fixture.file.kept.changes(.all, limit: 2).count == 2)
    #expect(try fixture.file.kept.tables(refused: false) == ["late", "other"])
    #expect(try fixture.file.kept.tables(refused: true) == ["held"])
    try fixture.file.track(["late"], creatingKey: "id")
    #expect(
      try fixture.rows("SELECT id, a, b FROM late ORDER BY id") == [
        ["a", nil, "2"], ["z", "1", nil],
      ])
    #expect(try records(.all) == ["h", "o"])
  }

  @Test("records of a table with more columns than a table may have say so, and stay")
  func columns() throws {
    var limits = Limits.standard
    limits.recordColumns = 4
    let fixture = try ReplicaFixture(limits: limits)
    let changes = (1...6).map { maker.change($0, "wide", "r\($0)", [Column("c\($0)", "x")]) }
    try fixture.apply(changes + [maker.change(7, "late", "a", [Column("b", "2")])])
    let report = try BulkTracking(file: fixture.file).trackSpace(creatingKey: "id")
    #expect(report.tracked == ["late"])
    #expect(report.faults.map(\.table) == ["wide"])
    #expect(report.faults.first?.reason.contains("more than 3 different columns") == true)
    #expect(try fixture.file.kept.count() == 6)
  }

  @Test("a table of more columns than Ferry creates is tracked as its message says")
  func manyColumns() throws {
    let fixture = try ReplicaFixture()
    let most = Limits.standard.columns
    let changes = [1...400, 401...800, 801...most + 1].enumerated().map { number, columns in
      maker.change(
        SequenceNumber(number + 1), "wide", "r\(number)",
        columns.map { Column(Name("c\($0)"), .integer(Int64($0))) })
    }
    try fixture.apply(changes)
    let fault = try #require(
      try BulkTracking(file: fixture.file).trackSpace(creatingKey: "id").faults.first)
    #expect(fault.table == "wide")
    #expect(fault.reason.contains("more than 1,000 different columns"), "\(fault.reason)")
    let create = #"CREATE TABLE "wide"("id" TEXT PRIMARY KEY NOT NULL, …)"#
    #expect(fault.reason.contains(create) && fault.reason.contains("`ferry track wide`"))
    #expect(try fixture.rows("SELECT 1 FROM sqlite_schema WHERE name = 'wide'").isEmpty)
    // Other tables are not touched, and the way out works.
    try fixture.run(create.replacing("…", with: "c1 INTEGER, c900 INTEGER"))
    try fixture.file.track(["wide"])
    #expect(
      try fixture.rows("SELECT id, c1, c900 FROM wide ORDER BY id") == [
        ["r0", 1, nil], ["r1", nil, nil], ["r2", nil, 900],
      ])
    try fixture.run("UPDATE wide SET c1 = 7 WHERE id = 'r1'")
    #expect(try fixture.freeze()[0].operations.map(\.columns) == [[Column("c1", 7)]])
  }

  @Test("a table of as many columns as an operation may have is created, and one more is refused")
  func widest() throws {
    let fixture = try ReplicaFixture()
    let most = Limits.standard.columns
    let columns = (1...most).map { Column(Name("c\($0)"), .integer(Int64($0))) }
    try fixture.apply([maker.change(1, "wide", "a", columns)])
    #expect(try BulkTracking(file: fixture.file).trackSpace(creatingKey: "id").tracked == ["wide"])
    try fixture.run("INSERT INTO wide(id, c5) VALUES ('b', 5); UPDATE wide SET c9 = 1")
    let frozen = try fixture.freeze()[0].operations
    #expect(Set(frozen.map(\.key.record)) == ["a", "b"])
    let list = (0...most).map { "c\($0)" }.joined(separator: ", ")
    try fixture.run("CREATE TABLE wider(id TEXT PRIMARY KEY, \(list))")
    let fault = #expect(throws: ReplicaError.self) { try fixture.file.track(["wider"]) }
    #expect("\(try #require(fault))".contains("1,000 columns beside its key"))
  }

  @Test("deferred changes are retried once with each pull")
  func retried() throws {
    let fixture = try ReplicaFixture()
    try fixture.run("CREATE TABLE held(id TEXT PRIMARY KEY, n INTEGER CHECK (n < 5))")
    try fixture.file.track(["held"])
    let changes = (1...20).map { maker.change($0, "held", "h\($0)", [Column("n", .integer($0))]) }
    #expect(try fixture.apply(changes).refused == 16)
    #expect(try fixture.apply([maker.change(21, "held", "h9", [Column("n", 1)])]).refused == 15)
    #expect(try fixture.rows("SELECT count(*) FROM held") == [[5]])
  }

  @Test(
    "a record is fetched again when an own write of its deferred column is confirmed",
    arguments: [("n", true), ("m", false)])
  func overwritten(column: String, isFetched: Bool) throws {
    let fixture = try ReplicaFixture()
    try fixture.run("CREATE TABLE held(id TEXT PRIMARY KEY, n INTEGER CHECK (n < 5), m INTEGER)")
    try fixture.file.track(["held"])
    try fixture.apply([maker.change(1, "held", "h", [Column("n", 1)])])
    let theirs = maker.change(2, "held", "h", [Column("n", 9)], inserts: false)
    #expect(try fixture.apply([theirs]).refused == 1)
    try fixture.run("UPDATE held SET \(column) = 3")
    _ = try fixture.file.chain.receive(fixture.receipt(fixture.freeze()[0], first: 3))
    #expect(try fixture.file.syncState().applied == 3)
    let key = RecordKey(table: "held", record: "h")
    #expect(try fixture.file.refreshes.next() == (isFetched ? [key] : []))
  }

  @Test("tables with a deferred record whose parent is missing are tracked again")
  func trackedAgain() throws {
    let fixture = try ReplicaFixture()
    try fixture.run(
      """
      CREATE TABLE p(id TEXT PRIMARY KEY);
      CREATE TABLE k(id TEXT PRIMARY KEY, p TEXT REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED)
      """)
    try fixture.file.track(["p", "k"])
    #expect(try fixture.apply([maker.change(1, "k", "k1", [Column("p", "p1")])]).refused == 1)
    try fixture.file.track(["p", "k"])
    #expect(try fixture.file.kept.refusedCount() == 1)
    try fixture.run("ALTER TABLE k ADD COLUMN more TEXT")
    try fixture.file.schemaChanges.refreshIfNew()
    #expect(try fixture.file.kept.refusedCount() == 1)
    try fixture.apply([maker.change(2, "p", "p1", [])])
    #expect(try fixture.rows("SELECT id, p FROM k") == [["k1", "p1"]])
  }

  @Test("a record that ends each transaction stops no program from tracking its tables again")
  func endedAgain() throws {
    let fixture = try ReplicaFixture()
    try fixture.run(
      "CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT NOT NULL ON CONFLICT ROLLBACK)")
    try fixture.file.track(["tasks"])
    #expect(try fixture.apply([maker.change(1, "tasks", "a", [])]).refused == 1)
    try fixture.file.track(["tasks"])
    #expect(try fixture.file.kept.refusedCount() == 1)
  }

  @Test("a user may drop and refill a parent table while a change of another table waits")
  func refilled() throws {
    let fixture = try ReplicaFixture()
    try fixture.run(
      """
      CREATE TABLE p(id TEXT PRIMARY KEY);
      CREATE TABLE k(id TEXT PRIMARY KEY, p TEXT REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED);
      INSERT INTO p VALUES ('p1'); INSERT INTO k VALUES ('k1', 'p1')
      """)
    try fixture.file.track(["k"])
    try fixture.apply([maker.change(1, "late", "z", [Column("a", "1")])])
    try fixture.run(
      """
      CREATE TEMP TABLE former AS SELECT * FROM p; DROP TABLE p; CREATE TABLE p(id TEXT PRIMARY KEY);
      INSERT INTO p SELECT * FROM former
      """)
    #expect(try fixture.rows("SELECT p.id FROM k JOIN p ON p.id = k.p") == [["p1"]])
    #expect(try fixture.file.kept.count() == 1)
  }

  /// Returns how often SQLite was interrupted, every thousand steps, while tables were created.
  private func cost(tables count: Int, waiting others: Int) throws -> Int {
    let fixture = try ReplicaFixture()
    let tables = (0..<count).map { Name("table\($0)") }
    let rows = tables.enumerated().map { maker.change(Int64($0) + 1, $1, "r", [Column("a", "1")]) }
    let rest = (0..<others).map { maker.change(Int64(1_000 + $0), "later", "r\($0)", []) }
    try fixture.apply(rows + rest)
    var steps = 0
    try fixture.file.connection.interrupting(when: {
      steps += 1; return nil
    }) {
      try fixture.file.track(tables, creatingKey: "id")
    }
    #expect(try fixture.file.kept.count() == others)
    return steps
  }

  @Test("a table that is created costs the same, however many changes wait for other tables")
  func linear() throws {
    let alone = try cost(tables: 24, waiting: 0) - cost(tables: 4, waiting: 0)
    let beside = try cost(tables: 24, waiting: 4_000) - cost(tables: 4, waiting: 4_000)
    // A look at each waiting change for each table would be more than 80 times a thousand steps.
    #expect(beside - alone < 50, "\(beside) against \(alone)")
  }

  @Test("work that is cancelled while changes are applied leaves the file as it was")
  func cancelled() throws {
    let fixture = try ReplicaFixture()
    let changes = (0..<2_000).map { maker.change(Int64($0) + 1, "late", "r\($0)", []) }
    try fixture.apply(changes)
    var isCancelled = false
    var seen: [Int] = []
    fixture.file.attempts.whileRetrying = {
      seen.append(fixture.file.attempts.count)
      isCancelled = seen.count > 2
    }
    #expect(throws: CancellationError.self) {
      try fixture.file.connection.interrupting(when: { isCancelled ? CancellationError() : nil }) {
        _ = try BulkTracking(file: fixture.file).trackSpace(creatingKey: "id")
      }
    }
    #expect(seen.count == 3)
    #expect(try fixture.file.kept.count() == 2_000)
    #expect(try fixture.rows("SELECT name FROM sqlite_schema WHERE name = 'late'") == [])
    fixture.file.attempts.whileRetrying = nil
    _ = try BulkTracking(file: fixture.file).trackSpace(creatingKey: "id")
    #expect(try fixture.rows("SELECT count(*) FROM late") == [[2000]])
  }
}
