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
}
