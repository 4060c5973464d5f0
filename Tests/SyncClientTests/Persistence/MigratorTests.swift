import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@Suite("Migrations", .hangLimit)
struct MigratorTests {
  private struct Broken: Error {}

  /// Creates a table, adds a column, and fills it.
  private static let three: Migrator = {
    var migrator = Migrator()
    migrator.add("create") { try $0.execute("CREATE TABLE t(id TEXT PRIMARY KEY, a)") }
    migrator.add("add b") { try $0.execute("ALTER TABLE t ADD COLUMN b") }
    migrator.add("fill") { try $0.execute("INSERT INTO t VALUES ('x', 1, 2)") }
    return migrator
  }()

  private static func beginning(with count: Int) -> Migrator {
    var migrator = Migrator()
    for step in three.steps.prefix(count) { migrator.add(step) }
    return migrator
  }

  private func rows(_ fixture: Fixture, _ sql: String = "SELECT * FROM t") async throws -> [[Value]]
  {
    try await fixture.database.read { try $0.query(sql).map(\.values) }
  }

  @Test("each step runs once, in order, from the version that the file has")
  func ordered() async throws {
    let fixture = try await Fixture()
    let database = fixture.database
    #expect(try await database.migrate(Self.beginning(with: 1)).ran == ["create"])
    #expect(try await database.migrate(Self.three).ran == ["add b", "fill"])
    #expect(try await database.migrate(Self.three).ran == [])
    #expect(try await rows(fixture) == [["x", 1, 2]])
  }

  @Test("a failed step leaves the last good version, and the next call continues there")
  func failure() async throws {
    let fixture = try await Fixture()
    var broken = Self.beginning(with: 2)
    broken.add("broken") { database in
      try database.execute("INSERT INTO t VALUES ('half', 1, 2)")
      throw Broken()
    }
    broken.add("never") { try $0.execute("DROP TABLE t") }
    let failure = await SyncClientTests.failure(MigrationFailure.self) {
      try await fixture.database.migrate(broken)
    }
    #expect(failure?.step == "broken")
    #expect(failure?.version == "add b")
    #expect(failure?.reason is Broken)
    #expect(try await rows(fixture) == [])
    #expect(try await fixture.database.migrate(Self.three).ran == ["fill"])
  }

  @Test("the fallback keeps the last good version, or repairs the cause and runs the step again")
  func fallback() async throws {
    let fixture = try await Fixture()
    var migrator = Self.beginning(with: 1)
    migrator.add("needs u") { try $0.execute("INSERT INTO u VALUES (1)") }
    let kept = try await fixture.database.migrate(migrator) { failure in
      #expect(failure.description.contains("step 'needs u' of the migration failed: no such table"))
      return .keepVersion
    }
    #expect(kept == MigrationReport(ran: ["create"], failed: "needs u"))
    let database = fixture.database
    let repaired = try await database.migrate(migrator) { failure in
      #expect(failure.attempt == 1)
      try await database.write { _ = try $0.execute("CREATE TABLE u(n)") }
      return .retry
    }
    #expect(repaired == MigrationReport(ran: ["needs u"]))
  }

  @Test("a step that fails again and again ends the migration")
  func attempts() async throws {
    let fixture = try await Fixture()
    var migrator = Migrator()
    migrator.add("broken") { _ in throw Broken() }
    let last = Mutex(0)
    await #expect(throws: MigrationFailure.self) {
      try await fixture.database.migrate(migrator) { failure in
        last.withLock { $0 = failure.attempt }
        return .retry
      }
    }
    #expect(last.withLock { $0 } == MigrationFallback.attemptsMax)
  }

  @Test("a file that has run other steps is refused and stays as it is")
  func otherSteps() async throws {
    let fixture = try await Fixture()
    try await fixture.database.migrate(Self.three)
    await #expect(throws: MigrationError.newer("add b")) {
      try await fixture.database.migrate(Self.beginning(with: 1))
    }
    var other = Self.beginning(with: 1)
    other.add("another") { _ in }
    other.add(Self.three.steps[2])
    await #expect(throws: MigrationError.otherOrder(done: "add b", expected: "another")) {
      try await fixture.database.migrate(other)
    }
    var twice = Self.three
    twice.add(Self.three.steps[0])
    await #expect(throws: MigrationError.twice("create")) {
      try await fixture.database.migrate(twice)
    }
    var nameless = Self.three
    nameless.add("") { _ in }
    await #expect(throws: MigrationError.badName("")) {
      try await fixture.database.migrate(nameless)
    }
    #expect(try await rows(fixture) == [["x", 1, 2]])
  }

  @Test("two that migrate a file at once run each step once between them")
  func atOnce() async throws {
    let fixture = try await Fixture()
    let other = try await LocalDatabase.open(fixture.path)
    var many = Migrator()
    many.add("create") { try $0.execute("CREATE TABLE t(n)") }
    for index in 0..<20 {
      many.add("\(index)") { try $0.execute("INSERT INTO t VALUES (\(index))") }
    }
    let migrator = many
    async let one = fixture.database.migrate(migrator)
    async let two = other.migrate(migrator)
    let ran = try await one.ran + two.ran
    #expect(ran.sorted() == migrator.steps.map(\.name).sorted())
    #expect(try await rows(fixture, "SELECT count(*) FROM t") == [[20]])
  }

  private static let family = """
    CREATE TABLE parent(id TEXT PRIMARY KEY);
    CREATE TABLE child(id TEXT PRIMARY KEY, parent REFERENCES parent(id) ON DELETE CASCADE);
    INSERT INTO parent VALUES ('p');
    INSERT INTO child VALUES ('c', 'p');
    """

  @Test("a parent that is created again keeps its children")
  func rebuilt() async throws {
    let fixture = try await Fixture()
    var migrator = Migrator()
    migrator.add("family") { try $0.execute(Self.family) }
    migrator.add("rebuild") {
      try $0.execute(
        """
        CREATE TABLE next(id TEXT PRIMARY KEY, name TEXT);
        INSERT INTO next(id) SELECT id FROM parent;
        DROP TABLE parent;
        ALTER TABLE next RENAME TO parent;
        """)
    }
    try await fixture.database.migrate(migrator)
    #expect(try await rows(fixture, "SELECT * FROM child") == [["c", "p"]])
    #expect(
      try await fixture.database.write { try $0.query("PRAGMA foreign_keys")[0].values } == [1])
    try await fixture.database.write { try $0.execute("DELETE FROM parent") }
    #expect(try await rows(fixture, "SELECT * FROM child") == [])
  }

  @Test("a step after which a row refers to nothing fails")
  func dangling() async throws {
    let fixture = try await Fixture()
    var migrator = Migrator()
    migrator.add("family") { try $0.execute(Self.family) }
    migrator.add("orphan") { try $0.execute("DELETE FROM parent") }
    let failure = await SyncClientTests.failure(MigrationFailure.self) {
      try await fixture.database.migrate(migrator)
    }
    let reason = failure?.reason as? DatabaseError
    #expect(reason?.isConstraint == true)
    #expect(
      reason?.message
        == "1 rows refer to nothing after it, such as one of child that refers to parent")
    #expect(try await rows(fixture, "SELECT * FROM parent") == [["p"]])
    #expect(
      try await fixture.database.write { try $0.query("PRAGMA foreign_keys")[0].values } == [1])
  }
}
