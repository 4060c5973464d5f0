import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// The company's database decides about adopted tables: a row of a device that it refuses becomes
/// the company's row again on all devices.
@Suite("Rows of devices that a company's table refuses", .hangLimit)
struct MirrorAnswerTests {
  private typealias Company = MirrorAdoptionTests.Company

  private static let shop = """
    CREATE TABLE lists(id int PRIMARY KEY, name varchar(10));
    CREATE TABLE tasks(id int PRIMARY KEY, list int REFERENCES lists, title text CHECK (title <> 'bad'),
      size int, due date);
    CREATE TABLE audits(list int REFERENCES lists);
    INSERT INTO lists VALUES (1, 'one'), (2, 'two'); INSERT INTO audits VALUES (1);
    INSERT INTO tasks VALUES (1, 1, 'a', 1, NULL), (2, 2, 'b', 2, NULL), (3, 2, 'c', 3, NULL)
    """
  private static let lists = "SELECT CAST(id AS text), name FROM lists ORDER BY lists.id"
  private static let tasks =
    "SELECT CAST(id AS text), CAST(list AS text), title, CAST(size AS text) FROM tasks ORDER BY tasks.id"

  /// Both ways to capture programs' writes: an answer is captured by the step itself.
  private static let captures = ["triggers", "log"]

  /// Ends a mirror. PostgreSQL would keep the log for it.
  private static func end(_ run: ChildProcess, _ company: Company) async throws {
    try await MirrorRefusalTests.stop(run)
    #expect(try await company.stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    #expect(try company.stage.rows("SELECT tab FROM ferry_mirror.deferred") == [])
    try await company.stage.mirror(["status", "crm"])
    try await company.stage.mirror(["remove", "crm"])
  }

  @Test(
    "refused rows are the company's again on devices, and all others arrive", arguments: captures)
  func refused(_ capture: String) async throws {
    let company = try await Company.make(Self.shop)
    let (stage, device) = (company.stage, company.device)
    try await company.adopt("--table", "lists", "--table", "tasks", "--capture", capture)
    try await company.join()
    // A check, a length with a child, a text with U+0000, a range, and a date.
    try await device.write(
      """
      UPDATE tasks SET title = 'bad', size = 10 WHERE id = 2;
      UPDATE tasks SET title = 'C' WHERE id = 3;
      INSERT INTO lists VALUES (3, 'far too long for it'), (4, 'four');
      INSERT INTO tasks VALUES (4, 3, 'child', 1, NULL), (5, 2, 'x' || char(0), 1, NULL),
        (6, 2, 'wide', 99999999999, NULL), (7, 4, 'good', 7, NULL), (8, 4, 'd', 8, '2026-13-01')
      """)
    try await device.exchangeAll()
    let run = try stage.run()
    _ = try await run.line {
      $0.contains("returned: lists 3: value too long for type character varying(10)")
    }
    let expected = [
      ["1", "1", "a", "1"], ["2", "2", "b", "2"], ["3", "2", "C", "3"], ["7", "4", "good", "7"],
    ]
    try await stage.eventuallyRows(Self.tasks, expected)
    try await company.expectEqual(Self.tasks, count: 4)
    try await company.expectEqual(Self.lists, count: 3)
    try await stage.mirror(["status", "crm"])
    // The author has the refused values, with PostgreSQL's reason.
    let entries = try await device.open().quarantine.entries()
    let reasons = Dictionary(
      uniqueKeysWithValues: entries.map {
        ("\($0.operations[0].key.table) \($0.operations[0].key.record)", $0.detail)
      })
    #expect(
      Set(reasons.keys) == ["tasks 2", "tasks 4", "tasks 5", "tasks 6", "tasks 8", "lists 3"])
    #expect(reasons["tasks 2"]?.contains("tasks_title_check") == true, "\(reasons)")
    // A row that the company's other tables need.
    try await device.write("DELETE FROM tasks WHERE id = 1; DELETE FROM lists WHERE id = 1")
    try await device.exchangeAll()
    try await stage.eventuallyRows("SELECT id::text FROM tasks WHERE id = 1", [])
    try await eventually("the list is back", from: run) {
      try await device.exchangeAll()
      return try await device.rows("SELECT name FROM lists WHERE id = 1") == [["one"]]
    }
    // The author tries again, with a better value.
    try await device.write("UPDATE tasks SET title = 'bad' WHERE id = 2")
    try await device.exchangeAll()
    try await eventually("the title is back", from: run) {
      try await device.exchangeAll()
      return try await device.rows("SELECT title FROM tasks WHERE id = 2") == [["b"]]
    }
    try await device.write("UPDATE tasks SET title = 'better' WHERE id = 2")
    try await device.exchangeAll()
    try await stage.eventuallyRows("SELECT title FROM tasks WHERE id = 2", [["better"]])
    try await Self.end(run, company)
  }

  @Test(
    "devices that exchange values refused together get the former ones back", arguments: captures)
  func exchanged(_ capture: String) async throws {
    let company = try await Company.make(
      """
      CREATE TABLE users(id int PRIMARY KEY, email text UNIQUE, age int CHECK (age < 100), n bigint);
      INSERT INTO users VALUES (1, 'ada@x', 1, 10), (2, 'bob@x', 2, 10)
      """)
    let (stage, device) = (company.stage, company.device)
    try await company.adopt("--table", "users", "--capture", capture)
    try await company.join()
    try await device.write(
      """
      UPDATE users SET email = 'none' WHERE id = 1; UPDATE users SET email = 'ada@x' WHERE id = 2;
      UPDATE users SET email = 'bob@x', age = 500 WHERE id = 1
      """)
    try await device.exchangeAll()
    let run = try stage.run()
    let users = "SELECT CAST(id AS text), email, CAST(age AS text) FROM users ORDER BY users.id"
    try await eventually("the values are back", from: run) {
      try await device.exchangeAll()
      return try await device.rows(users) == [["1", "ada@x", "1"], ["2", "bob@x", "2"]]
    }
    #expect(try stage.rows(users) == [["1", "ada@x", "1"], ["2", "bob@x", "2"]])
    try await Self.end(run, company)
  }

  @Test(
    "a counter that the table refuses loses the refused amount, and no other", arguments: captures)
  func counter(_ capture: String) async throws {
    let company = try await Company.make(
      """
      CREATE TABLE accounts(id int PRIMARY KEY, balance bigint NOT NULL CHECK (balance >= 0));
      INSERT INTO accounts VALUES (1, 100)
      """)
    let (stage, device) = (company.stage, company.device)
    try await company.adopt("--table", "accounts", "--capture", capture)
    try await company.join()
    let replica = try await device.open()
    var schema = try await replica.schema()
    schema.tables["accounts"]?.columns["balance"] = ColumnRules(policy: .counter)
    schema.version += 1
    _ = try await replica.applySchema(schema)
    try await stage.mirror(["verify", "crm"])
    try await device.write("UPDATE accounts SET balance = balance - 500")
    try await device.exchange()
    try stage.sql("UPDATE accounts SET balance = balance + 7")
    let run = try stage.run()
    try await eventually("the balance is the company's", from: run) {
      try await device.exchange()
      return try await device.rows("SELECT balance FROM accounts") == [[107]]
    }
    #expect(try stage.rows("SELECT balance::text FROM accounts") == [["107"]])
    try await Self.end(run, company)
  }

  @Test("a trigger's change of a counter behind a device's write counts once", arguments: captures)
  func triggeredCounter(_ capture: String) async throws {
    let company = try await Company.make(
      """
      CREATE TABLE accounts(id int PRIMARY KEY, balance bigint NOT NULL, note text);
      INSERT INTO accounts VALUES (1, 100, 'a');
      CREATE FUNCTION fee() RETURNS trigger LANGUAGE plpgsql AS '
        BEGIN UPDATE accounts SET balance = balance + 1 WHERE id = NEW.id; RETURN NULL; END';
      CREATE TRIGGER fee AFTER UPDATE OF note ON accounts FOR EACH ROW EXECUTE FUNCTION fee()
      """)
    let (stage, device) = (company.stage, company.device)
    try await company.adopt("--table", "accounts", "--capture", capture)
    try await company.join()
    let replica = try await device.open()
    var schema = try await replica.schema()
    schema.tables["accounts"]?.columns["balance"] = ColumnRules(policy: .counter)
    schema.version += 1
    _ = try await replica.applySchema(schema)
    try await stage.mirror(["verify", "crm"])
    try await device.write("UPDATE accounts SET note = 'b'")
    try await device.exchange()
    let run = try stage.run()
    let query = "SELECT CAST(balance AS text), note FROM accounts"
    try await stage.eventuallyRows(query, [["101", "b"]])
    try await company.expectEqual(query, count: 1)
    #expect(try stage.rows(query) == [["101", "b"]])
    try await Self.end(run, company)
  }
}
