import Ferry
import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

/// Rows of the space that a mirror's file cannot hold.
@Suite("Rows that wait in a mirror's file", .hangLimit)
struct MirrorWaitingTests {
  @Test("the second of two rows with one unique value is listed with exit code 4 until it changes")
  func unique() async throws {
    let stage = try await MirrorFaultTests.stage()
    // The other table has no unique column, so it may write both rows.
    let other = try await Device.joined(
      stage.server.url, schema: "CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, name TEXT);",
      tracking: ["lists"])
    try await other.write("INSERT INTO lists VALUES ('a', 'same'), ('b', 'same'), ('c', 'own')")
    try await other.exchange()
    let verified = try await stage.mirror(["verify", "crm"], exits: 4)
    #expect(verified.output.contains("1 row deferred: see `ferryd mirror status crm`"))
    let status = try await stage.mirror(["status", "crm"], exits: 4)
    #expect(status.output.contains("deferred   1 row\n"), "\(status.output)")
    #expect(
      status.output.contains("  lists b: row a of table lists has the same name"),
      "\(status.output)")
    let json = try await stage.mirror(["status", "crm", "--json"], exits: 4)
    #expect(json.output.contains(#""key":["b"]"#), "\(json.output)")
    #expect(try stage.rows("SELECT id FROM app.lists ORDER BY id") == [["a"], ["c"]])
    try await other.write("UPDATE lists SET name = 'other' WHERE id = 'b'")
    try await other.exchange()
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    #expect(try await stage.mirror(["status", "crm"]).output.contains("deferred   0 rows"))
    #expect(try stage.rows("SELECT count(*)::text FROM app.lists") == [["3"]])
  }

  @Test("a mirror whose file another program locks is busy, not set up wrongly")
  func locked() async throws {
    let stage = try await MirrorFaultTests.stage()
    try await stage.mirror(["verify", "crm"])
    let file = stage.mirrors.url.path + "/crm/replica.db"
    let other = try SQLiteConnection(path: file)
    try other.execute("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE")
    let found = try await stage.mirror(["status", "crm"], exits: 3)
    #expect(found.error.contains("the file of mirror crm is busy"), "\(found.error)")
    #expect(!found.error.contains("--token"), "\(found.error)")
    try other.execute("ROLLBACK")
  }
}
