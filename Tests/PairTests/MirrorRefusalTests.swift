import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Committed transactions of programs, refused by the space: nothing of them is undone, and devices
/// give way.
@Suite("Transactions of programs that the space refuses", .hangLimit)
struct MirrorRefusalTests {
  typealias Company = MirrorAdoptionTests.Company

  private static let shop = """
    CREATE TABLE users(id int PRIMARY KEY, email text NOT NULL);
    CREATE TABLE accounts(id int PRIMARY KEY, balance bigint NOT NULL);
    CREATE TABLE entries(id int PRIMARY KEY, account int NOT NULL, size bigint NOT NULL);
    CREATE TABLE notes(id int PRIMARY KEY, body text);
    INSERT INTO accounts VALUES (1, 100), (2, 100); INSERT INTO notes VALUES (1, 'old'), (2, 'kept')
    """
  private static let accounts =
    "SELECT CAST(id AS text), CAST(balance AS text) FROM accounts ORDER BY accounts.id"
  private static let notes = "SELECT CAST(id AS text), body FROM notes ORDER BY notes.id"

  static func stop(_ run: ChildProcess) async throws {
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  /// Both ways to capture programs' writes.
  static let captures = ["triggers", "log"]

  /// Ends a mirror. PostgreSQL would keep the log for it.
  static func end(_ run: ChildProcess, _ company: Company) async throws {
    try await company.stage.mirror(["status", "crm"])
    try await stop(run)
    #expect(try await company.stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    try await company.stage.mirror(["remove", "crm"])
  }

  /// Makes a company with rules of the space, while no mirror runs.
  static func adopted(
    isUnique: Bool = true, _ capture: String = "triggers"
  ) async throws -> Company {
    let rule = isUnique ? "; ALTER TABLE users ADD UNIQUE (email)" : ""
    let company = try await Company.make(shop + rule)
    try await company.adopt(
      "--table", "users", "--table", "accounts", "--table", "entries", "--table", "notes",
      "--capture", capture)
    try await company.join()
    let replica = try await company.device.open()
    var schema = try await replica.schema()
    schema.tables["users"]?.unique = [["email"]]
    schema.tables["accounts"]?.columns["balance"] = ColumnRules(policy: .counter)
    schema.version += 1
    _ = try await replica.applySchema(schema)
    // The mirror has the rules: a row refused before a change of them would be retried.
    try await company.stage.mirror(["verify", "crm"])
    return company
  }

  private static let users = "SELECT CAST(id AS text), email FROM users ORDER BY users.id"

  @Test(
    "a program's transaction reaches the space whole although a device took its unique value before",
    arguments: captures)
  func takenValue(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let (stage, device) = (company.stage, company.device)
    try await device.write(
      """
      INSERT INTO users VALUES (9, 'ada@x'), (8, 'bob@x');
      UPDATE accounts SET balance = balance + 5 WHERE id = 1
      """)
    try await device.exchangeAll()
    try stage.sql(
      """
      BEGIN; INSERT INTO users VALUES (1, 'ada@x');
      UPDATE accounts SET balance = balance - 40 WHERE id = 1;
      UPDATE accounts SET balance = balance + 40 WHERE id = 2;
      INSERT INTO entries VALUES (1, 1, -40), (2, 2, 40); DELETE FROM notes WHERE id = 1; COMMIT
      """)
    let run = try stage.run()
    try await eventually("the transaction arrives", from: run) {
      try await device.exchangeAll()
      let entries = try await device.rows("SELECT count(*) FROM entries")
      let notes = try await device.rows("SELECT count(*) FROM notes WHERE id = 1")
      let balances = try await device.rows("SELECT balance FROM accounts ORDER BY id")
      // No device sees a part of it.
      let isThere = entries == [[2]]
      #expect(entries == [[isThere ? 2 : 0]] && notes == [[isThere ? 0 : 1]])
      #expect(balances == (isThere ? [[65], [140]] : [[105], [100]]))
      return isThere
    }
    for query in [Self.users, Self.accounts] { try await company.expectEqual(query, count: 2) }
    try await company.expectEqual(Self.notes, count: 1)
    #expect(try stage.rows(Self.accounts) == [["1", "65"], ["2", "140"]])
    #expect(try stage.rows("SELECT id::text FROM notes") == [["2"]])
    // The device's row has given way, on the device as well.
    #expect(try stage.rows(Self.users) == [["1", "ada@x"], ["8", "bob@x"]])
    let entries = try await device.open().quarantine.entries()
    #expect(entries.map(\.code) == [.overruled])
    #expect(entries.first?.detail == "the company's row 1 of table users has this email")
    #expect(entries.first?.operations.first?.columns.contains { $0.value == "ada@x" } == true)
    #expect(try stage.rows("SELECT tab FROM ferry_mirror.unsent") == [])
    try await Self.end(run, company)
  }

  @Test(
    "a device's row that has taken a program's unique value becomes the company's row again",
    arguments: captures)
  func takenByUpdate(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let (stage, device) = (company.stage, company.device)
    try stage.sql("INSERT INTO users VALUES (9, 'old@x')")
    let first = try stage.run()
    try await company.expectEqual(Self.users, count: 1)
    try await Self.stop(first)
    try await device.write("UPDATE users SET email = 'ada@x' WHERE id = 9")
    try await device.exchangeAll()
    try stage.sql("INSERT INTO users VALUES (1, 'ada@x')")
    let run = try stage.run()
    try await company.expectEqual(Self.users, count: 2)
    #expect(try stage.rows(Self.users) == [["1", "ada@x"], ["9", "old@x"]])
    try await stage.mirror(["status", "crm"])
    // The mirror has the device's value already as it reads the program's row.
    let program = try PostgresConnection(url: stage.database)
    try program.execute("BEGIN; LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE")
    try await device.write("INSERT INTO users VALUES (7, 'eve@x')")
    try await device.exchangeAll()
    let mirror = try await Replica.open(stage.mirrors.file("crm/replica.db").path)
    try await eventually("the mirror has the row", from: run) {
      try await mirror.read { try $0.query("SELECT id FROM users WHERE id = 7").count } == 1
    }
    await mirror.close()
    try program.execute("INSERT INTO users VALUES (2, 'eve@x'); COMMIT")
    try await company.expectEqual(Self.users, count: 3)
    #expect(
      try stage.rows(Self.users) == [["1", "ada@x"], ["2", "eve@x"], ["9", "old@x"]])
    try await Self.end(run, company)
  }

  @Test(
    "a program's delete arrives although a device's refused row referred to the row",
    arguments: captures)
  func heldDelete(_ capture: String) async throws {
    let company = try await Company.make(
      """
      CREATE TABLE lists(id int PRIMARY KEY, name text);
      CREATE TABLE tasks(id int PRIMARY KEY, title text, list int REFERENCES lists);
      INSERT INTO lists VALUES (1, 'one'), (2, 'two')
      """)
    let (stage, device) = (company.stage, company.device)
    try await company.adopt("--table", "lists", "--table", "tasks", "--capture", capture)
    try await company.join()
    // PostgreSQL cannot hold this text.
    try await device.write("INSERT INTO tasks VALUES (7, 'x' || char(0), 1)")
    try await device.exchangeAll()
    let run = try stage.run()
    _ = try await run.line { $0.contains("returned: tasks 7: ") }
    try stage.sql("BEGIN; DELETE FROM lists WHERE id = 1; UPDATE lists SET name = 'zwei'; COMMIT")
    try await company.expectEqual("SELECT CAST(id AS text), name FROM lists ORDER BY lists.id")
    #expect(try stage.rows("SELECT id::text, name FROM lists") == [["2", "zwei"]])
    #expect(try await device.rows("SELECT id FROM tasks") == [])
    try await Self.end(run, company)
  }

  @Test("a refused transaction stays whole in tables that the mirror has made")
  func ownTables() async throws {
    let stage = try await MirrorTests.Stage.make()
    try await stage.device.write("INSERT INTO lists VALUES ('a', 'one'), ('b', 'two')")
    try await stage.device.exchange()
    let replica = try await stage.device.open()
    var schema = try await replica.schema()
    schema.tables["tasks"]?.columns["title"] = ColumnRules(type: .text, isRequired: true)
    schema.version += 1
    _ = try await replica.applySchema(schema)
    let run = try stage.run()
    try await stage.eventuallyRows("SELECT id FROM app.lists ORDER BY id", [["a"], ["b"]])
    try stage.sql(
      """
      BEGIN; INSERT INTO app.tasks(id) VALUES ('bad'); DELETE FROM app.lists WHERE id = 'a';
      UPDATE app.lists SET name = 'zwei' WHERE id = 'b'; COMMIT
      """)
    try await eventually("the rest arrives", from: run) {
      try await stage.device.exchange()
      return try await stage.device.rows("SELECT id, name FROM lists") == [["b", "zwei"]]
    }
    #expect(try stage.rows("SELECT id, name FROM app.lists") == [["b", "zwei"]])
    #expect(try stage.rows("SELECT id, title FROM app.tasks") == [["bad", nil]])
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains("tasks bad: the space refuses it"), "\(status)")
    try stage.sql("UPDATE app.tasks SET title = 'good'")
    try await eventually("the row arrives", from: run) {
      try await stage.device.exchange()
      return try await stage.device.rows("SELECT id, title FROM tasks") == [["bad", "good"]]
    }
    try await Self.stop(run)
  }
}
