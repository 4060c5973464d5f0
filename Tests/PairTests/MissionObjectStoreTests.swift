import Ferry
import FerryCryptography
import FerryTestSupport
import Foundation
import Testing

/// Missions whose content is in a bucket of a real S3-compatible store.
@Suite(
  .enabled(if: ObjectStoreServer.isAvailable, "\(ObjectStoreServer.skipReason)"), .hangLimit)
struct MissionObjectStoreTests {
  private let folder: TemporaryDirectory
  private let objects: ObjectStoreServer

  init() async throws {
    folder = try TemporaryDirectory(prefix: "ferry-objects")
    objects = try await ObjectStoreServer()
    try ObjectStoreServer.write(ObjectStoreServer.key, to: folder.file("credentials"))
  }

  /// The options of a node with a separate directory.
  private func content(
    _ bucket: String, node: String, credentials: String = "credentials"
  ) -> [String] {
    [
      "--content", "s3://\(bucket)/missions", "--content-endpoint", objects.endpoint,
      "--content-credentials", folder.file(credentials).path,
      "--blobs", folder.file(node).path, "--mission-key", folder.file("key.pem").path,
    ]
  }

  private func publish(_ draft: Draft, to server: Server, token: String) async throws {
    let published = try await ChildProcess.run(
      try Executables.ferryd(),
      ["mission", "publish", draft.path, "--id", "tour", "--space", Device.space]
        + ["--server", server.url, "--token", token])
    try #require(published.status == .exited(0), "\(published.error)")
  }

  /// Returns the name of the film's content.
  private func hash(of draft: Draft) throws -> String {
    Hexadecimal.text(SHA256.digest(of: Array(try Data(contentsOf: draft.file("film.mp4")))))
  }

  private func files(of node: String) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: folder.file(node).path)
      .filter { $0.utf8.count > 64 }
  }

  @Test(
    "two nodes with one bucket and no shared directory serve one mission to a device",
    arguments: [false, true])
  func nodes(redirects: Bool) async throws {
    let bucket = try await objects.bucket()
    let database = try await Server.database()
    let flags = redirects ? ["--content-redirect"] : []
    let east = try Server(database: database, content(bucket, node: "east") + flags)
    let west = try Server(database: database, content(bucket, node: "west") + flags)
    try await east.start()
    try await west.start()
    let draft = try Draft()
    try draft.write("film.mp4", mebibytes: 40)
    try draft.write("empty", [])
    try draft.write("index.html", Array("<h1>hello</h1>".utf8))
    _ = try await Device.joined(east.url)
    let admin = try await east.token("admin")
    let device = try await Device.joined(west.url, token: try await west.token("reader"))
    try await publish(draft, to: east, token: admin)
    try await device.ferry("mission", "download", "tour")
    try await device.expect(draft, in: "tour")
    #expect(try files(of: "east") == [] && files(of: "west") == [])
    if redirects {
      #expect(try await west.blobBytes() <= 40 << 20)
    } else {
      // The server counts a response after it has gone.
      try await eventually("the film to be counted") { try await west.blobBytes() > 40 << 20 }
    }
    try await checkCommands(east, bucket)
  }

  @Test("each part of an upload may go to each node, also after a node is killed")
  func partsOfNodes() async throws {
    let bucket = try await objects.bucket()
    let database = try await Server.database()
    let east = try Server(database: database, content(bucket, node: "east"))
    let west = try Server(database: database, content(bucket, node: "west"))
    try await east.start()
    try await west.start()
    let draft = try Draft()
    try draft.write("film.mp4", mebibytes: 20)
    _ = try await Device.joined(east.url)
    let token = try await east.token("admin")
    let device = try await Device.joined(west.url, token: try await west.token("reader"))
    let film = Array(try Data(contentsOf: draft.file("film.mp4")))
    let path = "/v1/spaces/\(Device.space)/blobs/\(try hash(of: draft))"
    func send(_ part: Range<Int>, to node: Server) async throws -> Wire.Answer {
      try await Wire.send(
        .put, node.url + path,
        headers: [
          "Authorization": "Bearer \(token)", "Content-Type": "application/octet-stream",
          "Content-Range": "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(film.count)",
        ], body: Array(film[part]))
    }
    let size = 4 << 20
    for number in 0..<4 {
      let answer = try await send(
        number * size..<(number + 1) * size, to: number % 2 == 0 ? east : west)
      #expect(answer.status == 204 && answer.headers["Upload-Complete"] == "?0", "\(answer.text)")
    }
    let early = try await send(19 << 20..<20 << 20, to: west)
    #expect(early.problem == "upload_conflict" && early.headers["Upload-Offset"] == "\(16 << 20)")
    try await west.kill()
    let last = try await send(16 << 20..<20 << 20, to: east)
    #expect(last.status == 201 && last.headers["Upload-Complete"] == "?1", "\(last.text)")
    try await west.start()
    // The content is there already.
    try await publish(draft, to: west, token: token)
    try await device.ferry("mission", "download", "tour")
    try await device.expect(draft, in: "tour")
    #expect(try files(of: "east") == [] && files(of: "west") == [])
  }

  /// The commands for the store and the bucket, and the collector.
  private func checkCommands(_ server: Server, _ bucket: String) async throws {
    let options = content(bucket, node: "third")
    let shown = try await server.run(
      ["mission", "show", "tour", "--space", Device.space, "--verify"] + options)
    #expect(shown.status == .exited(0), "\(shown.error)")
    let backup = folder.file("backup").path
    let saved = try await server.run(["backup", backup] + options)
    try #require(saved.status == .exited(0), "\(saved.error)")
    #expect(saved.output.contains("4 files"), "\(saved.output)")
    let retracted = try await server.run(
      ["mission", "retract", "tour", "--space", Device.space] + options)
    try #require(retracted.status == .exited(0), "\(retracted.error)")
    let collected = try await server.run(["mission", "collect", "--keep", "0s"] + options)
    #expect(collected.output.hasPrefix("removed 4 files"), "\(collected.output)\(collected.error)")
    let checked = try await server.run(["restore", backup, "--check"] + options)
    #expect(checked.status == .exited(0), "\(checked.error)")
  }

  @Test("a backup of an embedded store is restored into another bucket")
  func restores() async throws {
    let server = try Server(content(try await objects.bucket(), node: "one"))
    try await server.start()
    let draft = try Draft()
    try draft.write("film.mp4", mebibytes: 20)
    try draft.write("empty", [])
    _ = try await Device.joined(server.url)
    let admin = try await server.token("admin")
    try await publish(draft, to: server, token: admin)
    let backup = folder.file("backup").path
    let saved = try await server.run(["backup", backup] + content("ferry-1", node: "one"))
    try #require(saved.status == .exited(0), "\(saved.error)")
    try await server.stop()
    let bucket = try await objects.bucket()
    let restored = try await ChildProcess.run(
      try Executables.ferryd(),
      ["restore", backup, "--data", folder.file("new").path] + content(bucket, node: "two"))
    try #require(restored.status == .exited(0), "\(restored.error)")
    let shown = try await ChildProcess.run(
      try Executables.ferryd(),
      [
        "mission", "show", "tour", "--space", Device.space, "--verify", "--data",
        folder.file("new").path,
      ] + content(bucket, node: "two"))
    #expect(shown.status == .exited(0), "\(shown.output)\(shown.error)")
  }

  @Test("a wrong bucket and a wrong key end the start with the reason")
  func refusals() async throws {
    func start(_ options: [String]) async throws -> ChildProcess.Finished {
      try await ChildProcess.run(
        try Executables.ferryd(),
        ["serve", "--listen", "127.0.0.1:0", "--data", folder.file("data").path] + options)
    }
    let absent = try await start(content("absent-bucket", node: "one"))
    #expect(absent.status == .exited(1) && absent.error.contains("no such bucket"), "\(absent)")
    let bucket = try await objects.bucket()
    try ObjectStoreServer.write(
      ObjectStoreServer.Key(accessKey: ObjectStoreServer.key.accessKey, secretKey: "wrong"),
      to: folder.file("wrong"))
    let wrong = try await start(content(bucket, node: "one", credentials: "wrong"))
    #expect(wrong.status == .exited(1) && wrong.error.contains("SignatureDoesNotMatch"), "\(wrong)")
    #expect(!wrong.error.contains(ObjectStoreServer.key.secretKey))
    let none = try await start(["--content", "s3://\(bucket)", "--content-credentials", "/absent"])
    #expect(none.status == .exited(2) && none.error.contains("/absent"), "\(none)")
    try await objects.kill()
    let down = try await start(content(bucket, node: "one") + ["--start-wait", "1s"])
    #expect(down.status == .exited(1) && down.error.contains("content"), "\(down)")
  }

  @Test("content that the store has damaged is never sent to its end, and no device shows it")
  func damaged() async throws {
    let bucket = try await objects.bucket()
    let server = try Server(content(bucket, node: "one"))
    try await server.start()
    let draft = try Draft()
    try draft.write("film.mp4", mebibytes: 5)
    let device = try await Device.joined(server.url)
    let published = try await server.run(
      ["mission", "publish", draft.path, "--id", "tour", "--space", Device.space]
        + content(bucket, node: "one"))
    try #require(published.status == .exited(0), "\(published.error)")
    let hash = try hash(of: draft)
    let object = "missions/\(hash.prefix(2))/\(hash.dropFirst(2).prefix(2))/\(hash)"
    let other = try Draft()
    try other.write("film.mp4", mebibytes: 5, seed: 2)
    try await objects.replace(object, in: bucket, with: other.file("film.mp4"))
    await #expect(throws: (any Error).self) {
      _ = try await Wire.send(.get, "\(server.url)/v1/blobs/\(hash)")
    }
    let verified = try await server.run(
      ["mission", "show", "tour", "--space", Device.space, "--verify"]
        + content(bucket, node: "one"))
    #expect(verified.status == .exited(1) && verified.output.contains("film.mp4"))
    try await objects.replace(object, in: bucket, with: draft.file("film.mp4"))
    try await device.ferry("mission", "download", "tour")
    try await device.expect(draft, in: "tour")
  }

  @Test("a store that is down makes one request fail, and a device goes on when it is back")
  func outage() async throws {
    let server = try Server(content(try await objects.bucket(), node: "one"))
    try await server.start()
    let draft = try Draft()
    try draft.write("film.mp4", mebibytes: 30)
    let device = try await Device.joined(server.url)
    let published = try await server.run(
      ["mission", "publish", draft.path, "--id", "tour", "--space", Device.space]
        + content("ferry-1", node: "one"))
    try #require(published.status == .exited(0), "\(published.error)")
    let run = try MissionRun(device, ["download", "tour", "--watch", "--limit-rate", "8MiB"])
    try await run.reached(4 << 20)
    try await objects.kill()
    let answer = try await Wire.send(.get, "\(server.url)/v1/blobs/\(hash(of: draft))")
    #expect(answer.status == 503 && answer.problem == "unavailable", "\(answer.text)")
    // Everything else is served.
    #expect(try await Wire.send(.get, "\(server.url)/readyz").status == 200)
    try await objects.start()
    try await run.ends()
    try await device.expect(draft, in: "tour")
  }
}
