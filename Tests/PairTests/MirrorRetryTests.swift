import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Rows of programs refused by the space, after the reason is gone.
@Suite("Retries of rows refused by the space", .hangLimit)
struct MirrorRetryTests {
  typealias Company = MirrorAdoptionTests.Company

  private static let users = "SELECT CAST(id AS text), email FROM users ORDER BY users.id"

  private static func expectUnsent(_ company: Company, _ run: ChildProcess) async throws {
    try await company.stage.eventuallyRows(
      "SELECT tab, key[1] FROM ferry_mirror.unsent WHERE NOT retry", [["users", "1"]])
    try await company.stage.mirror(["status", "crm"], exits: 4)
  }

  private static func expectSent(_ company: Company, _ run: ChildProcess) async throws {
    try await company.stage.eventuallyRows("SELECT tab FROM ferry_mirror.unsent", [])
    try await company.expectEqual(users)
    try await company.stage.mirror(["status", "crm"])
  }

  /// Makes a company whose table has no rule for unique values, with a row of a device.
  private static func adopted() async throws -> Company {
    let company = try await MirrorRefusalTests.adopted(isUnique: false)
    try await company.device.write("INSERT INTO users VALUES (9, 'ada@x')")
    try await company.device.exchange()
    try await company.stage.mirror(["verify", "crm"])
    return company
  }

  @Test("a row arrives as soon as a device gives its unique value up, or deletes the other row")
  func freedByDevice() async throws {
    let company = try await Self.adopted()
    let (stage, device) = (company.stage, company.device)
    try stage.sql("INSERT INTO users VALUES (1, 'ada@x')")
    let run = try stage.run()
    try await Self.expectUnsent(company, run)
    try await device.write("UPDATE users SET email = 'eve@x' WHERE id = 9")
    try await device.exchange()
    try await Self.expectSent(company, run)
    #expect(
      try stage.rows(Self.users) == [["1", "ada@x"], ["9", "eve@x"]])
    // Once more; and the other row goes while no mirror runs.
    try await device.write("INSERT INTO users VALUES (8, 'bob@x')")
    try await device.exchange()
    try await stage.eventuallyRows("SELECT email FROM users WHERE id = 8", [["bob@x"]])
    try await MirrorRefusalTests.stop(run)
    try stage.sql("UPDATE users SET email = 'bob@x' WHERE id = 1")
    let second = try stage.run()
    try await Self.expectUnsent(company, second)
    try await MirrorRefusalTests.stop(second)
    try await device.write("DELETE FROM users WHERE id = 8")
    try await device.exchange()
    let third = try stage.run()
    try await Self.expectSent(company, third)
    #expect(
      try stage.rows(Self.users) == [["1", "bob@x"], ["9", "eve@x"]])
    try await MirrorRefusalTests.stop(third)
  }

  @Test("a row arrives as soon as a program gives its unique value up in another row")
  func freedByProgram() async throws {
    let company = try await Self.adopted()
    let stage = company.stage
    try stage.sql("INSERT INTO users VALUES (1, 'ada@x')")
    let run = try stage.run()
    try await Self.expectUnsent(company, run)
    try stage.sql("UPDATE users SET email = 'eve@x' WHERE id = 9")
    try await company.expectEqual(Self.users, count: 2)
    #expect(try stage.rows(Self.users) == [["1", "ada@x"], ["9", "eve@x"]])
    try await Self.expectSent(company, run)
    try await MirrorRefusalTests.stop(run)
  }

  @Test("a row arrives as soon as the schema of the space allows it")
  func freedBySchema() async throws {
    let company = try await MirrorRefusalTests.adopted()
    let (stage, device) = (company.stage, company.device)
    let replica = try await device.open()
    func apply(isUnique: Bool) async throws {
      var schema = try await replica.schema()
      schema.tables["notes"]?.unique = isUnique ? [["body"]] : []
      schema.version += 1
      _ = try await replica.applySchema(schema, dropsRules: true)
    }
    try await apply(isUnique: true)
    try await stage.mirror(["verify", "crm"])
    let run = try stage.run()
    try stage.sql("INSERT INTO notes VALUES (7, 'kept')")
    try await stage.eventuallyRows(
      "SELECT tab, key[1] FROM ferry_mirror.unsent WHERE NOT retry", [["notes", "7"]])
    try await apply(isUnique: false)
    try await stage.eventuallyRows("SELECT tab FROM ferry_mirror.unsent", [])
    try await company.expectEqual("SELECT CAST(id AS text), body FROM notes ORDER BY notes.id")
    // Once more; and the schema changes while no mirror runs.
    try stage.sql("UPDATE notes SET body = 'x' WHERE id = 7")
    try await company.expectEqual("SELECT CAST(id AS text), body FROM notes ORDER BY notes.id")
    try await apply(isUnique: true)
    try stage.sql("INSERT INTO notes VALUES (8, 'kept')")
    try await stage.eventuallyRows("SELECT tab, key[1] FROM ferry_mirror.unsent", [["notes", "8"]])
    try await MirrorRefusalTests.stop(run)
    try await apply(isUnique: false)
    let second = try stage.run()
    try await stage.eventuallyRows("SELECT tab FROM ferry_mirror.unsent", [])
    try await company.expectEqual("SELECT CAST(id AS text), body FROM notes ORDER BY notes.id")
    try await MirrorRefusalTests.stop(second)
  }

  @Test("a repair of the space tries each row again, whatever its reason was")
  func repair() async throws {
    let company = try await Company.make(
      "CREATE TABLE sizes(id int PRIMARY KEY, size float8); INSERT INTO sizes VALUES (1, 'NaN')")
    try await company.adopt("--table", "sizes")
    try await company.stage.mirror(["status", "crm"], exits: 4)
    // No trigger sees the new values.
    try company.stage.sql("ALTER TABLE sizes ALTER size TYPE float8 USING 2")
    try await company.stage.mirror(["verify", "crm", "--repair", "space"])
    try await company.stage.mirror(["status", "crm"])
    try await company.join()
    #expect(try await company.device.rows("SELECT id, size FROM sizes") == [[1, 2.0]])
  }

  @Test("a refused transaction of many rows costs a few statements, and not some for each row")
  func many() async throws {
    let company = try await Self.adopted()
    let (stage, device) = (company.stage, company.device)
    // A sequence also counts statements that are undone.
    try stage.sql(
      """
      CREATE SEQUENCE calls; CREATE FUNCTION called() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM nextval(''public.calls''); RETURN NULL; END';
      CREATE TRIGGER counted AFTER INSERT OR UPDATE OR DELETE ON users
        FOR EACH STATEMENT EXECUTE FUNCTION called();
      CREATE TRIGGER counted BEFORE INSERT OR UPDATE OR DELETE ON ferry_mirror.unsent
        FOR EACH STATEMENT EXECUTE FUNCTION called();
      BEGIN; INSERT INTO users SELECT n, n || '@x' FROM generate_series(1001, 1600) n;
      INSERT INTO users VALUES (1, 'ada@x'); COMMIT
      """)
    let run = try stage.run()
    try await Self.expectUnsent(company, run)
    try await eventually("the others arrive", from: run) {
      try await device.exchange()
      return try await device.rows("SELECT count(*) FROM users") == [[601]]
    }
    let calls = try stage.rows("SELECT last_value::text FROM calls")
    #expect(Int(calls[0][0] ?? "") ?? .max < 300, "\(calls)")
    try await MirrorRefusalTests.stop(run)
  }
}
