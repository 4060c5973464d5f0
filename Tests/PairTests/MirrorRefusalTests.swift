import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Committed transactions of programs, refused by the space: nothing of them is undone.
@Suite("Transactions of programs that the space refuses", .hangLimit)
struct MirrorRefusalTests {
  typealias Company = MirrorAdoptionTests.Company

  private static let shop = """
    CREATE TABLE users(id int PRIMARY KEY, email text NOT NULL UNIQUE);
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

  /// Makes a company with rules of the space, while no mirror runs.
  static func adopted() async throws -> Company {
    let company = try await Company.make(shop)
    try await company.adopt(
      "--table", "users", "--table", "accounts", "--table", "entries", "--table", "notes")
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

  @Test(
    "a transaction stays whole in the company's tables if a device took its unique value before")
  func takenValue() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    try await company.device.write("INSERT INTO users VALUES (9, 'ada@x')")
    try await company.device.exchange()
    try stage.sql(
      """
      BEGIN; INSERT INTO users VALUES (1, 'ada@x');
      UPDATE accounts SET balance = balance - 40 WHERE id = 1;
      UPDATE accounts SET balance = balance + 40 WHERE id = 2;
      INSERT INTO entries VALUES (1, 1, -40), (2, 2, 40); DELETE FROM notes WHERE id = 1; COMMIT
      """)
    let run = try stage.run()
    _ = try await run.line { $0.contains("unsent: users 1: the space refuses it") }
    // The rest of the transaction reaches the space without the refused row.
    try await eventually("the rest arrives", from: run) {
      try await company.device.exchange()
      return try await company.device.rows("SELECT id FROM entries ORDER BY id") == [[1], [2]]
    }
    try await company.expectEqual(Self.accounts, count: 2)
    try await company.expectEqual(Self.notes, count: 1)
    #expect(
      try stage.rows("SELECT id::text, balance::text FROM accounts ORDER BY id")
        == [["1", "60"], ["2", "140"]])
    #expect(try stage.rows("SELECT id::text FROM notes") == [["2"]])
    #expect(try stage.rows("SELECT id::text, email FROM users") == [["1", "ada@x"]])
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains("unsent     1 row as in the tables"), "\(status)")
    #expect(status.contains("has the same email"), "\(status)")
    try await Self.stop(run)
    let verified = try await stage.mirror(["verify", "crm"], exits: 4).output
    #expect(verified.contains("1 row unsent"), "\(verified)")
    // The company gives way by itself. Then the device's row arrives.
    let again = try stage.run()
    try stage.sql("UPDATE users SET email = 'eve@x'")
    try await stage.eventuallyRows(
      "SELECT id::text, email FROM users ORDER BY id", [["1", "eve@x"], ["9", "ada@x"]])
    try await eventually("nothing is unsent", from: again) {
      try stage.rows("SELECT tab FROM ferry_mirror.unsent").isEmpty
    }
    try await stage.mirror(["status", "crm"])
    try await company.expectEqual("SELECT CAST(id AS text), email FROM users ORDER BY users.id")
    try await Self.stop(again)
  }

  @Test("a delete that a device's row holds back is not undone in the company's table")
  func heldDelete() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE lists(id int PRIMARY KEY, name text);
      CREATE TABLE tasks(id int PRIMARY KEY, title text, list int REFERENCES lists);
      INSERT INTO lists VALUES (1, 'one'), (2, 'two')
      """)
    let (stage, device) = (company.stage, company.device)
    try await company.adopt("--table", "lists", "--table", "tasks")
    try await company.join()
    // PostgreSQL cannot hold this text.
    try await device.write("INSERT INTO tasks VALUES (7, 'x' || char(0), 1)")
    try await device.exchange()
    let run = try stage.run()
    try await stage.eventuallyRows("SELECT tab FROM ferry_mirror.deferred", [["tasks"]])
    try stage.sql("BEGIN; DELETE FROM lists WHERE id = 1; UPDATE lists SET name = 'zwei'; COMMIT")
    try await stage.eventuallyRows("SELECT tab, key[1] FROM ferry_mirror.unsent", [["lists", "1"]])
    // A later change of the space does not bring the row back.
    try await device.write(
      "UPDATE lists SET name = 'eins' WHERE id = 1; INSERT INTO lists VALUES (3, '')")
    try await device.exchange()
    try await stage.eventuallyRows(
      "SELECT id::text, name FROM lists ORDER BY id", [["2", "zwei"], ["3", ""]])
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains("lists 1: rows of table tasks refer to it (foreign key)"), "\(status)")
    try await device.write("DELETE FROM tasks")
    try await device.exchange()
    try await eventually("the list is deleted on devices", from: run) {
      try await device.exchange()
      return try await device.rows("SELECT id FROM lists ORDER BY id") == [[2], [3]]
    }
    try await stage.eventuallyRows("SELECT tab FROM ferry_mirror.unsent", [])
    try await Self.stop(run)
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
