import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Missions from the publisher's folder to the app's, with a real server between.
@Suite(.hangLimit)
struct MissionPairTests {
  private func publish(
    _ draft: Draft, to server: Server, as id: String, _ more: String...
  ) async throws {
    try await publish(draft.path, to: server, as: id, more + ["--chunk-size", "64KiB"])
  }

  private func publish(
    _ path: String, to server: Server, as id: String, _ more: [String] = []
  ) async throws {
    let arguments = ["mission", "publish", "--space", Device.space, "--id", id, path]
    let store = ["--data", server.directory.file("data").path]
    let finished = try await ChildProcess.run(
      try Executables.ferryd(), arguments + more + store)
    try #require(finished.status == .exited(0), "\(finished.error)")
  }

  /// Returns the bytes of items received over the network, by the reports until the manager was
  /// closed.
  private func fetched(_ events: AsyncStream<MissionEvent>) async -> Int64 {
    var fetched: Int64 = 0
    for await event in events {
      if case .progress(let progress) = event { fetched = max(fetched, progress.bytesFetched) }
    }
    return fetched
  }

  private func read(_ folder: String, _ name: String) -> [UInt8]? {
    FileManager.default.contents(atPath: folder + "/" + name).map { Array($0) }
  }

  @Test("a manager of missions rests with its replica, continues with it, and is closed with it")
  func companion() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let draft = try Draft()
    try draft.write("film.mp4", Draft.content(2, 400_000))
    try await publish(draft, to: server, as: "tour")
    let replica = try await device.open()
    try await replica.sync()
    let missions = try await replica.missionManager()
    let events = missions.events()
    await replica.suspend()
    // A request waits until the replica may work again.
    let request = Task { try await missions.download("tour") }
    replica.resume()
    try await request.value
    #expect(try await missions.waitUntilIdle("tour").map(\.state) == [.done])
    try await missions.download("tour")
    await replica.suspend()
    replica.resume()
    #expect(try await missions.waitUntilIdle("tour").map(\.state) == [.done])
    await replica.close()
    // The stream ends only when the manager is closed.
    for await _ in events {}
  }

  @Test("a published mission arrives with a pull, is downloaded, checked, updated and retracted")
  func life() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let draft = try Draft()
    let page = Array("<h1>hello</h1>".utf8)
    var film = Draft.content(1, 1_000_000)
    try draft.write("index.html", page)
    try draft.write("media/film.mp4", film)
    try draft.write("empty.txt", [])
    try await publish(draft, to: server, as: "tour", "--title", "City tour")
    let replica = try await device.open()
    try await replica.sync()
    let record = try #require(try await replica.missions().first)
    #expect(record.id.value == "tour" && record.version == 1 && record.title == "City tour")
    #expect(try await replica.verify().isEqual)

    let missions = try await replica.missionManager()
    try await missions.download("tour")
    #expect(try await missions.waitUntilIdle("tour").map(\.state) == [.done])
    let folder = try await missions.path("tour")
    #expect(read(folder, "index.html") == page && read(folder, "media/film.mp4") == film)
    #expect(read(folder, "empty.txt") == [])

    film[500_000] ^= 1
    try draft.write("media/film.mp4", film)
    try await publish(draft, to: server, as: "tour")
    try await replica.sync()
    #expect(try await missions.mission(record.id).hasUpdate)
    let events = missions.events()
    try await missions.download("tour")
    #expect(try await missions.waitUntilIdle("tour").map(\.state) == [.done])
    #expect(read(try await missions.path("tour"), "media/film.mp4") == film)
    #expect(read(folder, "media/film.mp4") != film)
    await missions.close()
    #expect(await fetched(events) == 65_536)

    let retracted = try await server.ferryd("mission", "retract", "--space", Device.space, "tour")
    try #require(retracted.status == .exited(0), "\(retracted.error)")
    try await replica.sync()
    #expect(try await replica.missions().isEmpty)
    #expect(try await replica.verify().isEqual)
  }

  @Test("a token for a space opens its missions, which are encrypted at rest with a key")
  func tokens() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url, token: try await server.token("writer"))
    let draft = try Draft()
    let secret = Draft.content(2, 300_000)
    try draft.write("secret.bin", secret)
    try await publish(draft, to: server, as: "plan")
    let replica = try await device.open()
    try await replica.sync()
    let missions = try await replica.missionManager(key: [UInt8](repeating: 5, count: 32))
    try await missions.download("plan")
    let status = try #require(try await missions.waitUntilIdle("plan").first)
    #expect(status.state == .done, "\(String(describing: status.reason))")
    let opened = try await missions.content(of: "secret.bin", in: status.id)
    #expect(try await opened.readAll() == secret)
    var changed = secret
    changed[200_000] ^= 1
    try draft.write("secret.bin", changed)
    try await publish(draft, to: server, as: "plan")
    try await replica.sync()
    let events = missions.events()
    try await missions.download("plan")
    #expect(try await missions.waitUntilIdle("plan").map(\.state) == [.done])
    let later = try await missions.content(of: "secret.bin", in: status.id)
    #expect(try await later.readAll() == changed)
    // Only this token's holder gets it.
    let stranger = try await Wire.send(.get, "\(server.url)/v1/blobs/\(opened.hash)")
    #expect(stranger.status == 401)
    await missions.close()
    #expect(await fetched(events) == 65_536)
  }

  @Test("the documents' example of missions equals the compiled one, and runs")
  func documented() async throws {
    let page = try Project.text("Documentation/missions.md")
    let shown = try #require(page.firstMatch(of: /```swift\n(?<code>(?s:.*?))```/)).code
    let example = try Project.text("Tests/PairTests/DocumentedMissions.swift")
    let body = try #require(
      example.firstMatch(of: /func missionExample.*\{\n(?<code>(?s:.*))\n\}/)
    ).code
    #expect(shown.filter { !$0.isWhitespace } == body.filter { !$0.isWhitespace })
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let draft = try Draft()
    try draft.write("index.html", Array("<h1>hello</h1>".utf8))
    try await publish(draft, to: server, as: "city-tour")
    let replica = try await device.open()
    try await replica.sync()
    try await missionExample(replica: replica)
    let missions = try await replica.missionManager(restores: false)
    #expect(read(try await missions.path("city-tour"), "index.html") != nil)
    await missions.close()
  }

  @Test("a cache answers with a mission's content without a network, encrypted or not")
  func pinned() async throws {
    let server = try await Server.start()
    _ = try await Device.joined(server.url)
    let draft = try Draft()
    let logo = Draft.content(6, 5_000)
    try draft.write("logo.png", logo)
    let manifest = draft.path + ".json"
    try Data(
      """
      {"items": [{"path": "img/logo.png", "file": "draft/logo.png", "kind": "image",
        "mediaType": "image/png", "url": "https://Media.example.org:443/%6Cogo.png?v=1"}]}
      """.utf8
    ).write(to: URL(filePath: manifest))
    try await publish(manifest, to: server, as: "m")
    for key in [nil, [UInt8](repeating: 5, count: 32)] {
      let device = try await Device.joined(server.url)
      let replica = try await device.open()
      try await replica.sync()
      let missions = try await replica.missionManager(key: key)
      var configuration = NetworkConfiguration()
      configuration.cache = .use(CacheOptions())
      let cache = DataManager(
        configuration, folder: device.directory.file("caches").path,
        partition: .named("test"), pinned: missions)
      try await missions.download("m")
      #expect(try await missions.waitUntilIdle("m").map(\.state) == [.done])
      let answer = try await cache.data(
        for: NetworkRequest(url: "https://media.example.org/logo.png?v=1"))
      #expect(answer.body == logo)
      let image = try await cache.image(for: "https://media.example.org/logo.png?v=1")
      #expect(image.mediaType == "image/png")
      await missions.close()
    }
  }

  @Test("an item on another server is fetched from there and checked")
  func foreign() async throws {
    let elsewhere = try await Server.start()
    let other = try Draft()
    let film = Draft.content(8, 100_000)
    try other.write("film.mp4", film)
    let owner = try await Device.joined(elsewhere.url)
    try await publish(other, to: elsewhere, as: "film")
    let source = try await owner.open()
    try await source.sync()
    let films = try await source.missionManager()
    try await films.download("film")
    try await films.waitUntilIdle("film")
    let name = try #require(MissionID("film"))
    let hash = try #require(try await films.items(name).first).content.hash
    await films.close()

    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let draft = try Draft()
    try draft.write("x", [1])
    let manifest = draft.path + ".json"
    try Data(
      """
      {"items": [{"path": "film.mp4", "url": "\(elsewhere.url)/v1/blobs/\(hash)",
        "sha256": "\(hash)", "size": 100000}]}
      """.utf8
    ).write(to: URL(filePath: manifest))
    try await publish(manifest, to: server, as: "m")
    let replica = try await device.open()
    try await replica.sync()
    let missions = try await replica.missionManager()
    try await missions.download("m")
    let status = try #require(try await missions.waitUntilIdle("m").first)
    #expect(status.state == .done, "\(String(describing: status.reason))")
    #expect(read(try await missions.path("m"), "film.mp4") == film)
    await missions.close()
  }

  @Test("damage on the device is repaired from the server")
  func repaired() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let draft = try Draft()
    let film = Draft.content(3, 200_000)
    try draft.write("film.mp4", film)
    try await publish(draft, to: server, as: "m")
    let replica = try await device.open()
    try await replica.sync()
    let missions = try await replica.missionManager()
    try await missions.download("m")
    let id = try #require(try await missions.waitUntilIdle("m").first).id
    let folder = try await missions.path("m")
    chmod(folder + "/film.mp4", 0o600)
    let file = try #require(FileHandle(forUpdatingAtPath: folder + "/film.mp4"))
    try file.write(contentsOf: Data([film[0] ^ 1]))
    try file.close()
    #expect(try await missions.verify(id).damaged == ["film.mp4"])
    #expect(try await missions.verify(id, repairing: true).isRepaired)
    #expect(read(folder, "film.mp4") == film)
    await missions.close()
  }

  @Test("a download waits for an absent server, and fetches no received byte again")
  func lostServer() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let draft = try Draft()
    let film = Draft.content(4, 200_000)
    try draft.write("film.mp4", film)
    try await publish(draft, to: server, as: "m")
    let replica = try await device.open()
    try await replica.sync()
    try await server.kill()
    var options = MissionOptions()
    options.pauses = RetryPolicy(
      delayBase: .milliseconds(50), delayMax: .milliseconds(100), attemptsMax: nil)
    let missions = try await replica.missionManager(options: options)
    let events = missions.events()
    try await missions.download("m")
    for await event in events {
      if case .changed(_, .downloading, let reason?) = event {
        #expect(reason.kind == .offline)
        break
      }
    }
    try await server.start()
    #expect(try await missions.waitUntilIdle("m").map(\.state) == [.done])
    #expect(read(try await missions.path("m"), "film.mp4") == film)
    await missions.close()
  }
}
