import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Replicas in memory with a real server.
@Suite("Replicas in memory and a server", .hangLimit)
struct MemoryReplicaPairTests {
  private func open(_ server: Server, _ space: String) async throws -> Replica {
    let replica = try await Replica.open(":memory:", server: server.url, space: space)
    try await replica.write { try $0.execute(Device.notes) }
    try await replica.track("notes")
    return replica
  }

  @Test("two of them and a file exchange rows, conflicts and blobs, and verify as equal")
  func exchange() async throws {
    let server = try await Server.start()
    let file = try await Device.joined(server.url, space: "memory")
    let (one, two) = (try await open(server, "memory"), try await open(server, "memory"))
    try await one.write { database in
      try database.execute(
        "INSERT INTO notes VALUES ('a', ?, 1)", [.blob(Array(repeating: 7, count: 100_000))])
    }
    for replica in [one, two] { try await replica.sync() }
    try await one.write { try $0.execute("UPDATE notes SET body = 'one'") }
    try await two.write { try $0.execute("UPDATE notes SET body = 'two'") }
    for replica in [one, two, one] { try await replica.sync() }
    let bodies = "SELECT body FROM notes"
    let body = try await one.read { try $0.query(bodies) }
    #expect(try await two.read { try $0.query(bodies) } == body)
    #expect(try await one.conflicts().count + two.conflicts().count >= 1)
    for replica in [one, two] { #expect(try await replica.verify().isEqual) }
    try await file.ferry("sync")
    #expect(try await file.rows(bodies).count == 1)
    for replica in [one, two] { await replica.close() }
  }

  @Test("a watch of two spaces applies other devices' rows, which a live query shows")
  func watch() async throws {
    let server = try await Server.start()
    let (one, two) = (try await open(server, "ada"), try await open(server, "ada"))
    let family = try await one.spaces.join("family")
    try await one.write { try $0.execute("CREATE TABLE shopping(id TEXT PRIMARY KEY)") }
    try await family.track("shopping")
    let watch = Task { try await one.watch() }
    try await two.write { try $0.execute("INSERT INTO notes VALUES ('a', 'hello', NULL)") }
    try await two.sync()
    for try await rows in one.observe({ try $0.query("SELECT body FROM notes") })
    where rows.count == 1 {
      break
    }
    try await one.write { try $0.execute("INSERT INTO shopping VALUES ('milk')") }
    try await eventually("the row of the joined space is sent") {
      try await server.head(of: "family") == 1
    }
    #expect(try await family.verify().isEqual)
    watch.cancel()
    _ = await watch.result
    for replica in [one, two] { await replica.close() }
  }

  @Test("a manager of missions works beside it, and its files end with the replica")
  func missions() async throws {
    let server = try await Server.start()
    let draft = try Draft()
    try draft.write("film.mp4", Draft.content(2, 300_000))
    let replica = try await open(server, Device.space)
    try await replica.sync()
    try await server.publish(draft.path, as: "tour")
    try await replica.sync()
    let missions = try await replica.missionManager()
    try await missions.download("tour")
    #expect(try await missions.waitUntilIdle("tour").map(\.state) == [.done])
    let path = try await missions.path("tour")
    #expect(FileManager.default.fileExists(atPath: path + "/film.mp4"))
    await replica.close()
    #expect(!FileManager.default.fileExists(atPath: path))
  }
}
