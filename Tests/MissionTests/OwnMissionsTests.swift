import FerryNetworking
import FerryPlatform
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryMissions

@Suite("Missions of the app's own", .hangLimit)
struct OwnMissionsTests {
  struct Course: Codable, Equatable {
    var id: Int
    var name: String
  }

  /// A server with a film, an image, and a service that answers POST with JSON.
  final class World: Sendable {
    let film = DownloadFixture.bytes(9_000_000, seed: 3)
    let image = DownloadFixture.bytes(70_000, seed: 4)
    /// The bytes after which the film's first answers stop.
    let cut = Mutex<Int?>(nil)
    let answer = Mutex("[1,2]")
    let missing = Mutex<Set<String>>([])

    func respond(_ request: HostileServer.Request) -> HostileServer.Answer {
      if missing.withLock({ $0.contains(request.path) }) {
        return HostileServer.Answer("404 Not Found", [], Array("none".utf8))
      }
      switch request.path {
      case "/film":
        let good = HostileServer.Answer.good(film, tag: "\"f\"", to: request)
        return cut.withLock { $0 }.map { good.cut(after: $0, .silence) } ?? good
      case "/image": return .good(image, tag: "\"i\"", to: request)
      default:
        let isRight = request.fields["x-key"] == "k"
        let text = answer.withLock { $0 }
        return HostileServer.Answer(isRight ? "200 OK" : "403 Forbidden", [], Array(text.utf8))
      }
    }
  }

  let directory: TemporaryDirectory
  let world = World()
  let server: HostileServer
  let course = Course(id: 7, name: "Knöten")

  init() throws {
    directory = try TemporaryDirectory()
    server = try HostileServer { [world] in world.respond($0) }
  }

  var folder: String { directory.file("own").path }

  func open(
    key: [UInt8]? = nil, options: MissionOptions = MissionOptions(),
    system: any FileCalls = SystemFileCalls(), downloader: (any Downloader)? = nil
  ) async throws -> OwnMissions {
    var options = options
    options.pauses = RetryPolicy(
      delayBase: .milliseconds(1), delayMax: .milliseconds(5), attemptsMax: nil)
    var surroundings = DownloadSurroundings.system
    surroundings.files = system
    let own = OwnParts.downloader(
      ChunkedDownloader.requests(over: CurlTransport(), server: ""), in: surroundings)
    return try await OwnMissions.open(folder, options: options) {
      (root) async throws(MissionError) in
      OwnParts(
        files: try DiskFileStore(root: root, key: key, system: system) {
          ThreadExecutor(name: $0)
        },
        store: try await SQLiteMissionStore.open("\(root)/content.db"),
        downloader: downloader ?? own, system: system)
    }
  }

  func url(_ path: String) -> String { "http://127.0.0.1:\(server.port)\(path)" }

  var lessons: OwnItem {
    .result(
      "data/lessons.json",
      of: ContentRequest(
        url("/lessons"), method: "POST", headers: ["X-Key": "k"], body: Array("{}".utf8)))
  }

  var film: OwnItem { .file("film.mp4", from: url("/film"), kind: .video) }
  var image: OwnItem {
    .file("image.png", from: url("/image"), kind: .image, mediaType: "image/png")
  }

  func mission(_ items: [OwnItem], payload: Course? = nil) -> OwnMission {
    OwnMission("course-7", title: "Knots", payload: payload ?? course, items: items)
  }

  func names(_ below: String) -> [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: "\(folder)/\(below)")) ?? []
  }

  @Test("files and results of any server become one mission with its model")
  func whole() async throws {
    let missions = try await open()
    try await missions.add(mission([film, image, lessons]))
    let states = try await missions.waitUntilIdle("course-7")
    #expect(states.map(\.state) == [.done])
    #expect(states.first?.bytesDone == 9_070_005)
    let path = try await missions.path("course-7")
    #expect(try Array(Data(contentsOf: URL(filePath: "\(path)/film.mp4"))) == world.film)
    #expect(try Array(Data(contentsOf: URL(filePath: "\(path)/image.png"))) == world.image)
    #expect(try await missions.result("data/lessons.json", in: "course-7") == [1, 2])
    #expect(try await missions.payload(of: "course-7") == course)
    await #expect(throws: MissionError.self) {
      try await missions.payload(of: "course-7", as: [Int].self)
    }
    #expect(try await missions.items("course-7").map(\.path).count == 3)
    #expect(try await missions.verify("course-7").isIntact)
    #expect(try await missions.manager.item(for: url("/image"))?.mediaType == "image/png")
    #expect(try await missions.manager.item(for: url("/lessons")) == nil, "POST is no address")
    #expect(names("staged").isEmpty)
    #expect(await missions.queue.downloads.isEmpty)
    await missions.close()
    let again = try await open()
    #expect(try await again.payload(of: "course-7") == course)
    #expect(try await again.isDownloaded("course-7"))
    try await again.remove("course-7")
    #expect(try await again.list().isEmpty)
    #expect(!FileManager.default.fileExists(atPath: path))
    await again.close()
  }

  @Test("after a restart the mission continues with its fetched parts, and the model is there")
  func restart() async throws {
    world.cut.withLock { $0 = 6_000_000 }
    var missions = try await open()
    try await missions.add(mission([film, image]))
    let download = try #require(try await missions.download(of: "film.mp4", in: "course-7"))
    for await status in download.updates() where status.progress.bytesDone >= 5_000_000 { break }
    #expect(try await !missions.isDownloaded("course-7"))
    await #expect(throws: MissionError.self) { try await missions.path("course-7") }
    await missions.close()
    world.cut.withLock { $0 = nil }
    let before = server.served
    missions = try await open()
    #expect(try await missions.payload(of: "course-7") == course)
    let states = try await missions.waitUntilIdle("course-7")
    #expect(states.map(\.state) == [.done])
    #expect(server.served - before < 4_500_000, "\(server.served - before) bytes")
    #expect(try await missions.verify("course-7").isIntact)
    await missions.close()
  }

  @Test(
    "a process that ends at any step between the last byte and the use continues, and fetches nothing again",
    arguments: [nil, [UInt8](repeating: 5, count: 32)])
  func endedLate(key: [UInt8]?) async throws {
    var (step, isDone) = (0, false)
    while !isDone {
      let calls = CountingFileCalls()
      var missions = try await open(key: key, system: calls)
      // Each change of a folder from now on belongs to the step into use.
      calls.changesLeft.withLock { $0 = step }
      try await missions.add(mission([image, lessons]))
      let status = try #require(try await missions.waitUntilIdle("course-7").first)
      isDone = status.state == .done
      if !isDone { #expect(status.state == .paused && status.reason?.kind == .files, "\(step)") }
      await missions.close()
      let before = server.served
      missions = try await open(key: key)
      #expect(try await missions.waitUntilIdle("course-7").map(\.state) == [.done], "\(step)")
      #expect(server.served == before, "step \(step)")
      #expect(try await missions.content(of: image.path, in: "course-7").readAll() == world.image)
      #expect(try await missions.verify("course-7").isIntact)
      try await missions.remove("course-7")
      await missions.close()
      step += 1
    }
    #expect(step > 4)
  }

  @Test("one missing item fails the whole mission, and the former version stays in use")
  func allOrNothing() async throws {
    let missions = try await open()
    try await missions.add(mission([image]))
    try await missions.waitUntilIdle("course-7")
    let path = try await missions.path("course-7")
    world.missing.withLock { _ = $0.insert("/film") }
    try await missions.add(mission([image, film], payload: Course(id: 8, name: "next")))
    let states = try await missions.waitUntilIdle("course-7")
    #expect(states.first?.state == .failed)
    #expect(states.first?.reason?.item == "film.mp4")
    #expect(states.first?.isDownloaded == true)
    #expect(try await missions.path("course-7") == path)
    #expect(try await missions.payload(of: "course-7") == course)
    #expect(names("staged").isEmpty)
    world.missing.withLock { $0 = [] }
    let next = Course(id: 9, name: "last")
    try await missions.add(mission([image, film], payload: next))
    #expect(try await missions.waitUntilIdle("course-7").first?.state == .done)
    #expect(try await missions.payload(of: "course-7") == next)
    #expect(try await missions.path("course-7") != path)
    await missions.close()
  }

  @Test("the answer to a request is kept as it is, and is repaired by the same request")
  func answer() async throws {
    world.answer.withLock { $0 = "no JSON" }
    var item = lessons
    item = .file("report.txt", of: item.request, mediaType: "text/plain")
    let missions = try await open()
    try await missions.add(mission([item]))
    #expect(try await missions.waitUntilIdle("course-7").first?.state == .done)
    let kept = try await missions.content(of: "report.txt", in: "course-7")
    #expect(try await kept.readAll() == Array("no JSON".utf8))
    let row = try #require(try await missions.items("course-7").first)
    try FileManager.default.removeItem(atPath: try #require(row.localPath))
    #expect(try await missions.verify("course-7", repairing: true).isRepaired)
    await missions.close()
  }

  @Test("events report the progress from the first known bytes to the whole, and each fetched item")
  func progress() async throws {
    world.cut.withLock { $0 = 6_000_000 }
    let missions = try await open()
    var events = missions.events().makeAsyncIterator()
    try await missions.add(mission([film, image, lessons]))
    var (seen, items) = ([MissionProgress](), Set<String>())
    while (seen.last?.bytesDone ?? 0) < 5_000_000, let event = await events.next() {
      if case .progress(let progress) = event { seen.append(progress) }
      if case .item(_, let path) = event { items.insert(path) }
    }
    let stuck = try #require(seen.last)
    #expect(stuck.bytesTotal <= 9_070_005 && stuck.bytesDone < 6_100_000)
    #expect(stuck.underWay.first?.path == "film.mp4")
    #expect(try await missions.mission("course-7").bytesDone >= 5_000_000)
    let film = try await missions.download(of: "film.mp4", in: "course-7")
    try await film?.pause()
    world.cut.withLock { $0 = nil }
    try await film?.resume()
    loop: while let event = await events.next() {
      switch event {
      case .progress(let progress): seen.append(progress)
      case .item(_, let path): items.insert(path)
      case .changed(_, .done, _): break loop
      case .changed, .removed: break
      }
    }
    #expect(items == ["film.mp4", "image.png", "data/lessons.json"])
    let last = try #require(seen.last)
    #expect(last.bytesDone == 9_070_005 && last.bytesTotal == 9_070_005)
    #expect(last.itemsDone == 3 && last.isTotalKnown && last.fraction == 1)
    // A stopped attempt may leave bytes out. The last 3 MB of the film came after the pause.
    #expect((3_000_000...9_500_000).contains(last.bytesFetched), "\(last.bytesFetched)")
    for (former, next) in zip(seen, seen.dropFirst()) {
      #expect(former.bytesDone <= next.bytesDone && next.bytesDone <= next.bytesTotal)
      #expect(former.itemsDone <= next.itemsDone)
    }
    await missions.close()
  }

  @Test("many items are fetched, and events report each state once")
  func many() async throws {
    let missions = try await open()
    let events = missions.events()
    let items = (0..<300).map { number in
      OwnItem.file("images/\(number).png", from: url("/image"), kind: .image)
    }
    try await missions.add(mission(items))
    var states: [MissionState] = []
    for await case .changed(_, let state, _) in events {
      states.append(state)
      if state == .done { break }
    }
    #expect(states.last == .done)
    #expect(zip(states, states.dropFirst()).allSatisfy { $0 != $1 }, "\(states)")
    #expect(try await missions.items("course-7").count == 300)
    await missions.close()
  }

  @Test("a mission is paused, resumed and cancelled as a whole")
  func control() async throws {
    world.cut.withLock { $0 = 2_000_000 }
    let missions = try await open()
    try await missions.add(mission([film, lessons]))
    try await missions.pause("course-7")
    #expect(try await missions.waitUntilIdle("course-7").first?.state == .paused)
    try await missions.resume("course-7")
    #expect(try await missions.mission("course-7").state != .paused)
    try await missions.cancel("course-7")
    #expect(try await missions.waitUntilIdle("course-7").first?.state == .cancelled)
    #expect(names("staged").isEmpty)
    await #expect(throws: MissionError.self) { try await missions.pause("course-7") }
    await missions.close()
  }
}
