import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Rows that the space has refused, and that devices change before the next try.
@Suite("Rows of programs that devices change while the space lacks them", .hangLimit)
struct MirrorUnsentTests {
  private static let accounts = """
    SELECT CAST(id AS text), owner, CAST(balance AS text), log FROM accounts ORDER BY accounts.id
    """

  /// Makes a company with two accounts. The space permits each owner one; the table does not ask.
  private static func adopted(_ capture: String) async throws -> MirrorAdoptionTests.Company {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE accounts(id int PRIMARY KEY, owner text, balance bigint NOT NULL, log text);
      INSERT INTO accounts VALUES (1, 'ann', 100, E'a\\nb\\n'), (2, 'bob', 100, '')
      """)
    try await company.adopt("--table", "accounts", "--capture", capture)
    try await company.join()
    let replica = try await company.device.open()
    var schema = try await replica.schema()
    schema.tables["accounts"]?.unique = [["owner"]]
    schema.tables["accounts"]?.columns["balance"] = ColumnRules(policy: .counter)
    schema.tables["accounts"]?.columns["log"] = ColumnRules(policy: .textMerge)
    schema.version += 1
    _ = try await replica.applySchema(schema)
    // The mirror has the rules: a row refused before a change of them would be retried.
    try await company.stage.mirror(["verify", "crm"])
    return company
  }

  @Test(
    "a retried row keeps the amounts and lines that devices have added to the space's row meanwhile",
    arguments: MirrorRefusalTests.captures)
  func keepsDevices(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let (stage, device) = (company.stage, company.device)
    let run = try stage.run()
    let isUnsent = "SELECT tab, key[1] FROM ferry_mirror.unsent WHERE NOT retry"
    try stage.sql(
      """
      UPDATE accounts SET owner = 'bob', balance = balance - 40, log = log || E'program\\n'
      WHERE id = 1
      """)
    try await stage.eventuallyRows(isUnsent, [["accounts", "1"]])
    try await device.write(
      "UPDATE accounts SET balance = balance + 5, log = 'device' || char(10) || log WHERE id = 1")
    try await device.exchangeAll()
    // The next update brings some columns, and the row is refused once more.
    try stage.sql("UPDATE accounts SET balance = balance + 10 WHERE id = 1")
    try await eventually("the update arrives", from: run) {
      try await device.exchangeAll()
      return try await device.rows("SELECT balance FROM accounts WHERE id = 1") == [[115]]
    }
    try await stage.eventuallyRows(isUnsent, [["accounts", "1"]])
    #expect(try stage.rows("SELECT balance::text FROM accounts WHERE id = 1") == [["70"]])
    try await device.write("UPDATE accounts SET owner = 'eve' WHERE id = 2")
    try await device.exchangeAll()
    try await stage.eventuallyRows("SELECT tab FROM ferry_mirror.unsent", [])
    try await stage.eventuallyRows(
      Self.accounts, [["1", "bob", "75", "device\na\nb\nprogram\n"], ["2", "eve", "100", ""]])
    try await company.expectEqual(Self.accounts, count: 2)
    try await MirrorRefusalTests.end(run, company)
  }

  @Test(
    "a transaction refused for another row keeps the amounts that devices have added before",
    arguments: MirrorRefusalTests.captures)
  func keepsEarlier(_ capture: String) async throws {
    let company = try await Self.adopted(capture)
    let (stage, device) = (company.stage, company.device)
    try stage.sql("INSERT INTO accounts VALUES (3, 'cay', 100, '')")
    try await stage.mirror(["verify", "crm"])
    try await device.exchangeAll()
    try await device.write("UPDATE accounts SET balance = balance + 5 WHERE id = 1")
    try await device.exchangeAll()
    // Both rows with the value are the company's.
    try stage.sql(
      """
      BEGIN; UPDATE accounts SET balance = balance - 40 WHERE id = 1;
      UPDATE accounts SET owner = 'bob' WHERE id = 3; COMMIT
      """)
    let run = try stage.run()
    try await stage.eventuallyRows(
      "SELECT tab, key[1] FROM ferry_mirror.unsent WHERE NOT retry", [["accounts", "3"]])
    try await stage.eventuallyRows("SELECT balance::text FROM accounts WHERE id = 1", [["65"]])
    try await eventually("the amount arrives", from: run) {
      try await device.exchangeAll()
      return try await device.rows("SELECT balance FROM accounts WHERE id = 1") == [[65]]
    }
    try stage.sql("UPDATE accounts SET owner = 'dan' WHERE id = 3")
    try await stage.eventuallyRows("SELECT tab FROM ferry_mirror.unsent", [])
    try await company.expectEqual(Self.accounts, count: 3)
    #expect(try stage.rows("SELECT balance::text FROM accounts WHERE id = 1") == [["65"]])
    try await MirrorRefusalTests.end(run, company)
  }
}
