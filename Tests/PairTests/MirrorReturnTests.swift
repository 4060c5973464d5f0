import Ferry
import FerryPostgres
import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

/// Mirrors that are removed, and whose tables are adopted again.
@Suite("Tables adopted again", .hangLimit)
struct MirrorReturnTests {
  private static let tasks = """
    CREATE TABLE tasks(id int PRIMARY KEY, title text, note text);
    INSERT INTO tasks SELECT i, 'old', 'old' FROM generate_series(1, 9) i
    """
  private static let rows =
    "SELECT CAST(id AS text), title, note FROM tasks ORDER BY tasks.id"

  @Test("a mirror that was removed for a while compares like a device that was away")
  func away() async throws {
    let company = try await MirrorAdoptionTests.Company.make(Self.tasks)
    let stage = company.stage
    try await company.adopt("--table", "tasks")
    try await company.join()
    // A row that the space cannot hold.
    try stage.sql("INSERT INTO tasks VALUES (60, repeat('x', 2000000), 'old')")
    _ = try await stage.mirror(["verify", "crm"], exits: 4)
    try await stage.mirror(["remove", "crm"])
    #expect(try await stage.mirror(["list"]).output.hasPrefix("there is no mirror"))
    let folder = stage.mirrors.url.path + "/crm/"
    for name in ["mirror.json", "replica.db-token"] {
      #expect(!FileManager.default.fileExists(atPath: folder + name), "\(name)")
    }
    try stage.sql(
      """
      DELETE FROM tasks WHERE id = 1; UPDATE tasks SET title = 'company' WHERE id IN (2, 5);
      UPDATE tasks SET id = 16 WHERE id = 6; INSERT INTO tasks VALUES (70, 'company', NULL)
      """)
    try await company.device.write(
      """
      UPDATE tasks SET note = 'device' WHERE id IN (2, 3); DELETE FROM tasks WHERE id = 4;
      INSERT INTO tasks VALUES (80, 'device', 'device')
      """)
    try await company.device.exchange()
    try await company.adopt("--table", "tasks")
    _ = try await stage.mirror(["verify", "crm"], exits: 4)
    let expected = [
      ["2", "company", "device"], ["3", "old", "device"], ["5", "company", "old"],
      ["7", "old", "old"], ["8", "old", "old"], ["9", "old", "old"], ["16", "old", "old"],
      ["70", "company", nil], ["80", "device", "device"],
    ]
    let fit = Self.rows.replacingOccurrences(of: "ORDER", with: "WHERE id <> 60 ORDER")
    #expect(try stage.rows(fit) == expected)
    try await company.expectEqual(fit, count: expected.count)
    // The row that the space cannot hold is as it was.
    let status = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(status.contains("unsent     1 row "), "\(status)")
    #expect(try stage.rows("SELECT id::text FROM tasks WHERE id = 60") == [["60"]])
    #expect(try await company.device.rows("SELECT id FROM tasks WHERE id = 60") == [])
  }

  @Test("without the last rows, the company's rows replace the space's, and adopt says so")
  func forgotten() async throws {
    let company = try await MirrorAdoptionTests.Company.make(Self.tasks)
    let stage = company.stage
    try await company.adopt("--table", "tasks")
    try await company.join()
    try await stage.mirror(["remove", "crm", "--forget"])
    #expect(!FileManager.default.fileExists(atPath: stage.mirrors.url.path + "/crm"))
    try stage.sql("DELETE FROM tasks WHERE id = 1")
    let again = try await company.adopt("--table", "tasks")
    #expect(again.error.contains("the space has rows of these tables already"), "\(again.error)")
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    #expect(try stage.rows("SELECT count(*)::text FROM tasks") == [["9"]])
  }

  @Test("a kill at any moment of the second adoption loses and repeats nothing")
  func killed() async throws {
    let company = try await MirrorAdoptionTests.Company.make(Self.tasks)
    let stage = company.stage
    try await company.adopt("--table", "tasks")
    try await company.join()
    try await stage.mirror(["remove", "crm"])
    try stage.sql("DELETE FROM tasks WHERE id = 1; UPDATE tasks SET title = 'company' WHERE id = 2")
    try await company.device.write("UPDATE tasks SET note = 'device' WHERE id = 2")
    try await company.device.exchange()
    let adopt = try company.start("tasks")
    try await eventually("the entry is there", from: adopt) {
      try stage.rows("SELECT name FROM ferry_mirror.mirrors") != []
    }
    adopt.send(SIGKILL)
    _ = try await adopt.exitStatus()
    let run = try stage.run()
    try await stage.eventuallyRows("SELECT note FROM tasks WHERE id = 2", [["device"]])
    try await company.expectEqual(Self.rows, count: 8)
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  @Test(
    "a device's change on its way out at the removal stays, and so does a program's write after it",
    arguments: ["triggers", "log"])
  func onTheWay(capture: String) async throws {
    let company = try await MirrorAdoptionTests.Company.make(Self.tasks)
    let stage = company.stage
    try await company.adopt("--table", "tasks", "--capture", capture)
    try await company.join()
    let lock = try PostgresConnection(url: stage.database)
    try lock.execute("BEGIN; SELECT FROM tasks WHERE id IN (2, 3, 4, 5, 6) FOR UPDATE")
    try await company.device.write(
      """
      UPDATE tasks SET note = 'device' WHERE id IN (2, 3, 5); DELETE FROM tasks WHERE id = 4;
      UPDATE tasks SET title = 'device' WHERE id = 6
      """)
    try await company.device.exchange()
    let run = try stage.run()
    let file = stage.mirrors.url.path + "/crm/replica.db"
    try await eventually("the changes are pulled", from: run) {
      try SQLiteConnection(path: file, mode: .readOnly).rows(
        "SELECT note FROM tasks WHERE id = 2"
      ) { $0.text(0) } == ["device"]
    }
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    // A write captured and missing in the space, beside the device's.
    try lock.execute("UPDATE tasks SET title = 'before' WHERE id = 5; COMMIT")
    try await stage.mirror(["remove", "crm"])
    try stage.sql(
      """
      UPDATE tasks SET title = 'company' WHERE id = 2; DELETE FROM tasks WHERE id = 3;
      UPDATE tasks SET note = 'company' WHERE id = 4; UPDATE tasks SET title = 'company' WHERE id = 6
      """)
    try await company.adopt("--table", "tasks", "--capture", capture)
    try await stage.mirror(["verify", "crm"])
    let expected = [
      ["1", "old", "old"], ["2", "company", "device"], ["5", "before", "device"],
      ["6", "company", "old"], ["7", "old", "old"], ["8", "old", "old"], ["9", "old", "old"],
    ]
    #expect(try stage.rows(Self.rows).filter { $0[0] != "4" } == expected)
    // As between two devices, an update brings a deleted row back.
    #expect(try stage.rows("SELECT note FROM tasks WHERE id = 4") == [["company"]])
    try await company.expectEqual(Self.rows, count: 8)
    // PostgreSQL would keep the log for it.
    try await stage.mirror(["remove", "crm"])
  }
}
