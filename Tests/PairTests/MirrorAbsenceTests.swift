import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Mirrors that were away while programs and devices wrote, or that come back with an older file.
@Suite("Mirrors that were away", .hangLimit)
struct MirrorAbsenceTests {
  @Test("a write that a program made while the mirror was down loses against a device's later one")
  func whileDown() async throws {
    let stage = try await MirrorFaultTests.stage()
    try await stage.device.write("INSERT INTO tasks(id, title) VALUES ('a', 'new')")
    try await stage.device.exchange()
    // One step carries all.
    try await stage.mirror(["verify", "crm"])
    try stage.sql(
      """
      UPDATE app.tasks SET title = 'early', rank = 1 WHERE id = 'a';
      UPDATE ferry_mirror.captured SET at = at - interval '1 minute'
      """)
    try await stage.device.write("UPDATE tasks SET title = 'late' WHERE id = 'a'")
    try await stage.device.exchange()
    let run = try stage.run()
    try await stage.eventuallyRows(
      "SELECT title, rank::text FROM app.tasks WHERE id = 'a'", [["late", "1"]])
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    try await MirrorFaultTests.expectEqual(stage)
    #expect(
      try await stage.device.rows("SELECT title, rank FROM tasks WHERE id = 'a'") == [["late", 1]])
  }

  @Test("a mirror's file that lost its last changes with the machine's power gets them again")
  func setBack() async throws {
    let stage = try await MirrorFaultTests.stage()
    let file = stage.mirrors.url.appending(path: "crm/replica.db")
    let copy = stage.mirrors.url.appending(path: "copy.db")
    func carry() async throws { try await stage.mirror(["verify", "crm"]) }
    try await carry()
    try FileManager.default.copyItem(at: file, to: copy)
    try await stage.device.write(
      "INSERT INTO lists(id, name) VALUES ('l', 'old'); INSERT INTO lists(id) VALUES ('gone')")
    try await stage.device.exchange()
    try await carry()
    try stage.sql("UPDATE app.lists SET name = 'program' WHERE id = 'l'")
    try await stage.device.write("DELETE FROM lists WHERE id = 'gone'")
    try await stage.device.exchange()
    try FileManager.default.removeItem(at: file)
    for end in ["-wal", "-shm"] {
      try? FileManager.default.removeItem(atPath: file.path + end)
    }
    try FileManager.default.moveItem(at: copy, to: file)
    try await carry()
    #expect(try stage.rows("SELECT id, name FROM app.lists") == [["l", "program"]])
    try await carry()
    try await MirrorFaultTests.expectEqual(stage)
  }
}
