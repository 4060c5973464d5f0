import Ferry
import FerryPostgres
import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

/// Looks at mirrors beside the processes that run them.
@Suite("A mirror's status at any moment", .hangLimit)
struct MirrorLookTests {
  @Test("status needs no lock of the mirror's file, and lists all rows or says how many there are")
  func lists() async throws {
    let stage = try await MirrorFaultTests.stage()
    try await stage.mirror(["verify", "crm"])
    let mirror = try stage.rows("SELECT number::text FROM ferry_mirror.mirrors")[0][0] ?? ""
    try stage.sql(
      """
      INSERT INTO ferry_mirror.deferred(mirror, tab, key, reason, retry)
      SELECT \(mirror), 'tasks', ARRAY['d' || i], 'a reason', false FROM generate_series(1, 3000) i;
      INSERT INTO ferry_mirror.unsent(mirror, tab, key, reason, retry)
      SELECT \(mirror), 'tasks', ARRAY['u' || i], 'a reason', false FROM generate_series(1, 3000) i
      """)
    // A large intake is one transaction.
    let writer = try SQLiteConnection(path: stage.mirrors.url.path + "/crm/replica.db")
    try writer.execute("BEGIN IMMEDIATE; CREATE TABLE intake(x)")
    let some = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(some.contains("deferred   1,000 of 3,000 rows (`--limit 3000` lists all)"), "\(some)")
    #expect(some.contains("unsent     1,000 of 3,000 rows (`--limit 3000` lists all) as in"))
    #expect(some.split(separator: "\n").filter { $0.contains("a reason") }.count == 2_000)
    let all = try await stage.mirror(["status", "crm", "--limit", "3000"], exits: 4).output
    #expect(all.contains("deferred   3,000 rows\n") && all.contains("tasks d3000: a reason"))
    let json = try await stage.mirror(["status", "crm", "--json"], exits: 4).output
    #expect(json.components(separatedBy: "a reason").count == 6_001)
    try writer.execute("ROLLBACK")
  }

  @Test("a unique value of a device's row and of a company's row: the lists name both rows")
  func clash() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE users(id int PRIMARY KEY, email text UNIQUE, name text);
      INSERT INTO users VALUES (1, 'same', 'company'), (2, 'other', 'company')
      """)
    let stage = company.stage
    try await company.device.write(
      """
      CREATE TABLE users(id INTEGER NOT NULL PRIMARY KEY, email TEXT UNIQUE, name TEXT);
      INSERT INTO users VALUES (7, 'same', 'device')
      """)
    try await company.device.ferry("track", "users", "--identity", "value")
    try await company.device.exchange()
    let made = try await company.adopt("--table", "users")
    #expect(made.output.contains("users 1: row 7 of table users has the same email"))
    _ = try await stage.mirror(["verify", "crm"], exits: 4)
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(
      status.contains("deferred   1 row\n") && status.contains("unsent     1 row "), "\(status)")
    #expect(status.contains("users 7: row 1 of table users has the same email"), "\(status)")
    // A later one of a device, which the mirror's file cannot hold.
    let other = try await Device.joined(
      company.server.url,
      schema: "CREATE TABLE users(id INTEGER NOT NULL PRIMARY KEY, email TEXT);",
      tracking: [])
    try await other.ferry("track", "users", "--identity", "value")
    try await other.write("INSERT INTO users VALUES (8, 'other')")
    try await other.exchange()
    _ = try await stage.mirror(["verify", "crm"], exits: 4)
    let later = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(later.contains("users 8: row 2 of table users has the same email"), "\(later)")
    // All rows travel as soon as one of the two changes.
    let run = try stage.run()
    try stage.sql("UPDATE users SET email = 'new' || id WHERE id IN (1, 2)")
    try await stage.eventuallyRows(
      "SELECT id::text FROM users ORDER BY id", [["1"], ["2"], ["7"], ["8"]])
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
  }
}
