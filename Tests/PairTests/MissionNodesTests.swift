import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Missions of two `ferryd` on one PostgreSQL, with one directory for content.
@Suite(.hangLimit)
struct MissionNodesTests {
  private let blobs: TemporaryDirectory
  private let east: Server
  private let west: Server

  init() async throws {
    blobs = try TemporaryDirectory(prefix: "ferry-blobs")
    let database = try await Server.database()
    let options = ["--blobs", blobs.file("shared").path]
    (east, west) = (
      try Server(database: database, options), try Server(database: database, options)
    )
    try await east.start()
    try await west.start()
  }

  private var content: [String] { ["--blobs", blobs.file("shared").path] }

  /// Returns the path of some content on a server.
  private func blob(_ hash: String) -> String { "/v1/blobs/\(hash)" }

  private func status(_ server: Server, _ hash: String, token: String) async throws -> Int {
    try await Wire.send(
      .get, server.url + blob(hash), headers: ["Authorization": "Bearer \(token)"]
    ).status
  }

  @Test("a mission published on one node is downloaded from the other, and removed from both")
  func nodes() async throws {
    let draft = try Draft()
    try draft.write("film.mp4", mebibytes: 6)
    try draft.write("index.html", Array("<h1>hello</h1>".utf8))
    _ = try await Device.joined(east.url)
    let admin = try await east.token("admin")
    let device = try await Device.joined(west.url, token: try await west.token("reader"))
    let published = try await ChildProcess.run(
      try Executables.ferryd(),
      ["mission", "publish", draft.path, "--id", "tour", "--space", Device.space]
        + ["--server", east.url, "--token", admin])
    try #require(published.status == .exited(0), "\(published.error)")
    try await device.ferry("mission", "download", "tour")
    try await device.expect(draft, in: "tour")
    // The server counts a response after it has gone.
    try await eventually("the film to be counted") { try await west.blobBytes() > 6 << 20 }
    #expect(try await east.blobBytes() == 0)

    let film = try await hash(of: "film.mp4", on: device)
    try await strangers(film, admin)
    // Retracted on the store, beside the servers; both notice it.
    let retracted = try await east.run(
      ["mission", "retract", "tour", "--space", Device.space] + content)
    try #require(retracted.status == .exited(0), "\(retracted.error)")
    #expect(try await status(east, film, token: admin) == 404)
    #expect(try await status(west, film, token: admin) == 404)
    try await device.exchange("pull")
    // A present mission stays until it is removed; it cannot be requested any more.
    try await device.expect(draft, in: "tour")
    try await device.ferry("mission", "remove", "tour")
    try await device.ferry("mission", "download", "tour", exits: 1)
  }

  private func hash(of item: String, on device: Device) async throws -> String {
    let shown = try await device.mission("tour")
    let files = try #require(shown.members["files"] as? [[String: Any]])
    return try #require(files.first { $0["path"] as? String == item }?["sha256"] as? String)
  }

  /// Checks that a token of another space gets nothing, at neither node.
  private func strangers(_ film: String, _ admin: String) async throws {
    let made = try await east.run(["space", "create", "other"])
    try #require(made.status == .exited(0), "\(made.error)")
    let stranger = try await east.token("admin", space: "other")
    for server in [east, west] {
      #expect(try await status(server, film, token: admin) == 200)
      let answer = try await Wire.send(
        .get, server.url + blob(film), headers: ["Authorization": "Bearer \(stranger)"])
      #expect(answer.status == 404 && answer.problem == "not_found")
      let listed = try await Wire.send(
        .get, "\(server.url)/v1/spaces/\(Device.space)/missions",
        headers: ["Authorization": "Bearer \(stranger)"])
      #expect(listed.status == 403 && !listed.text.contains("tour"))
    }
  }

  @Test("when a node is killed during a download, the device continues on the other node")
  func lostNode() async throws {
    let draft = try Draft()
    try draft.write("film.mp4", mebibytes: 24)
    let proxy = try TCPProxy(to: east.port, answerBytesMax: 64 << 10)
    let device = try await Device.joined(proxy.url)
    let published = try await east.run(
      ["mission", "publish", draft.path, "--id", "tour", "--space", Device.space] + content)
    try #require(published.status == .exited(0), "\(published.error)")
    let run = try MissionRun(device, ["download", "tour", "--watch", "--limit-rate", "4MiB"])
    try await run.reached(8 << 20)
    proxy.retarget(to: west.port)
    try await east.kill()
    try await run.ends()
    let size = 24 << 20
    #expect(try run.fetched() <= size + size * MissionStage.twice / 100)
    #expect(try await west.blobBytes() > 0)
    try await device.expect(draft, in: "tour")
  }
}
