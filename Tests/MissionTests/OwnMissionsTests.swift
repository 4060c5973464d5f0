import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryMissions

@Suite("Missions of the app's own", .hangLimit)
struct OwnMissionsTests {
  private struct Course: Codable, Equatable {
    var id: Int
    var name: String
  }

  /// A server with a film, an image, and a service that answers POST with JSON.
  private final class World: Sendable {
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

  private let directory: TemporaryDirectory
  private let world = World()
  private let server: HostileServer
  private let course = Course(id: 7, name: "Knöten")

  init() throws {
    directory = try TemporaryDirectory()
    server = try HostileServer { [world] in world.respond($0) }
  }

  private var folder: String { directory.file("own").path }

  private func open(key: [UInt8]? = nil) async throws -> OwnMissions {
    var options = MissionOptions()
    options.pauses = RetryPolicy(
      delayBase: .milliseconds(1), delayMax: .milliseconds(5), attemptsMax: nil)
    return try await OwnMissions.open(
      folder, key: key, options: options,
      requests: ChunkedDownloader.requests(over: CurlTransport(), server: ""),
      canonical: { $0 })
  }

  private func url(_ path: String) -> String { "http://127.0.0.1:\(server.port)\(path)" }

  private var lessons: OwnItem {
    .result(
      "data/lessons.json",
      of: ContentRequest(
        url("/lessons"), method: "POST", headers: ["X-Key": "k"], body: Array("{}".utf8)))
  }

  private var film: OwnItem { .file("film.mp4", from: url("/film"), kind: .video) }
  private var image: OwnItem {
    .file("image.png", from: url("/image"), kind: .image, mediaType: "image/png")
  }

  private func mission(_ items: [OwnItem], payload: Course? = nil) -> OwnMission {
    OwnMission("course-7", title: "Knots", payload: payload ?? course, items: items)
  }

  private func names(_ below: String) -> [String] {
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

  @Test("a process killed after any step of the last part continues it")
  func killedLate() async throws {
    var missions = try await open()
    try await missions.add(mission([image, lessons]))
    try await missions.waitUntilIdle("course-7")
    // As if the process had been killed before the manager had the content.
    let number = try #require(try await missions.list().first?.version)
    try await missions.manager.remove(OwnMissions.name("course-7"))
    try await missions.drafts.set(.composed, nil, of: number)
    await missions.close()
    missions = try await open()
    #expect(try await missions.waitUntilIdle("course-7").map(\.state) == [.done])
    #expect(try await missions.verify("course-7").isIntact)
    await missions.close()
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

  @Test("an item is paused alone: the others continue, and the mission waits for it")
  func pausedItem() async throws {
    world.cut.withLock { $0 = 2_000_000 }
    let missions = try await open()
    try await missions.add(mission([film, image]))
    let download = try #require(try await missions.download(of: "film.mp4", in: "course-7"))
    try await download.pause()
    let states = try await missions.waitUntilIdle("course-7")
    #expect(states.first?.state == .paused)
    #expect(states.first?.itemsDone == 1)
    #expect(try await !missions.isDownloaded("course-7"))
    world.cut.withLock { $0 = nil }
    let events = missions.events()
    try await download.resume()
    for await event in events {
      if case .changed(_, .done, _) = event { break }
    }
    #expect(try await missions.isDownloaded("course-7"))
    await missions.close()
  }

  @Test("an item that was paused stays so in the next process, and continues from its part")
  func pausedItemReopened() async throws {
    world.cut.withLock { $0 = 6_000_000 }
    var missions = try await open()
    try await missions.add(mission([film, image]))
    var download = try #require(try await missions.download(of: "film.mp4", in: "course-7"))
    for await status in download.updates() where status.progress.bytesDone >= 5_000_000 { break }
    try await download.pause()
    #expect(try await missions.waitUntilIdle("course-7").first?.state == .paused)
    await missions.close()

    world.cut.withLock { $0 = nil }
    let before = server.served
    missions = try await open()
    let states = try await missions.waitUntilIdle("course-7")
    #expect(states.first?.state == .paused)
    #expect(states.first?.itemsDone == 1)
    download = try #require(try await missions.download(of: "film.mp4", in: "course-7"))
    #expect(download.state == .paused)
    #expect(download.status.progress.bytesDone >= 5_000_000)
    #expect(server.served == before, "nothing is fetched while the item is paused")
    try await download.resume()
    #expect(try await missions.waitUntilIdle("course-7").first?.state == .done)
    #expect(server.served - before < 4_500_000, "\(server.served - before) bytes")
    #expect(try await missions.verify("course-7").isIntact)
    await missions.close()
  }

  @Test("an item that is cancelled alone is left out of the mission")
  func cancelledItem() async throws {
    world.cut.withLock { $0 = 2_000_000 }
    let missions = try await open()
    try await missions.add(mission([film, image]))
    try await missions.download(of: "film.mp4", in: "course-7")?.cancel()
    #expect(try await missions.waitUntilIdle("course-7").first?.state == .done)
    #expect(try await missions.items("course-7").map(\.path) == ["image.png"])
    await missions.close()
  }

  @Test("an item that comes after a cancelled one fails, and the mission with it")
  func cancelledPredecessor() async throws {
    world.cut.withLock { $0 = 2_000_000 }
    var last = image
    last.after = [film.path]
    let missions = try await open()
    try await missions.add(mission([film, last]))
    try await missions.download(of: "film.mp4", in: "course-7")?.cancel()
    let status = try await missions.waitUntilIdle("course-7").first
    #expect(status?.state == .failed)
    #expect(status?.reason?.kind == .dependency)
    #expect(status?.reason?.item == last.path)
    #expect(try await !missions.isDownloaded("course-7"))
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

  @Test("a result that is too large or not JSON fails", arguments: ["[1,2,3,4]", "{nope"])
  func results(text: String) async throws {
    world.answer.withLock { $0 = text }
    var item = lessons
    item.sizeMax = 8
    let missions = try await open()
    try await missions.add(mission([item]))
    let status = try await missions.waitUntilIdle("course-7").first
    #expect(status?.state == .failed)
    #expect(status?.reason?.item == item.path)
    await missions.close()
  }

  @Test("paths and addresses are checked before anything is stored")
  func hostile() async throws {
    let missions = try await open()
    func item(_ path: String, _ url: String = "http://x/", after: [String] = []) -> OwnItem {
      .file(path, from: url, after: after)
    }
    let wrong: [[OwnItem]] = [
      [], [item("../a")], [item("/a")], [item("a/../b")], [item("a"), item("a")],
      [item("Film.mp4"), item("film.mp4")], [item("a"), item("a/b")], [item("a\u{0}")],
      [item("a", "file:///etc/passwd")], [item("a", "http://")], [item("a", after: ["b"])],
      [item("a", after: ["b"]), item("b", after: ["a"])],
    ]
    for items in wrong {
      let failure = await #expect(throws: MissionError.self, "\(items.map(\.path))") {
        try await missions.add(mission(items))
      }
      #expect(failure?.kind == .badManifest)
    }
    let failure = await #expect(throws: MissionError.self) {
      try await missions.add(OwnMission("../x", items: [item("a")]))
    }
    #expect(failure?.kind == .badManifest)
    #expect(try await missions.list().isEmpty)
    await missions.close()
  }

  @Test("with a key no content is on the disk unencrypted, not even during the download")
  func sealed() async throws {
    let key = [UInt8](repeating: 5, count: 32)
    world.cut.withLock { $0 = 4_000_000 }
    var missions = try await open(key: key)
    try await missions.add(mission([film, image]))
    let download = try #require(try await missions.download(of: "film.mp4", in: "course-7"))
    for await status in download.updates() where status.progress.bytesDone >= 3_000_000 { break }
    #expect(try !isPlainAnywhere())
    await missions.close()
    world.cut.withLock { $0 = nil }
    for other in [nil, [UInt8](repeating: 6, count: 32)] {
      let failure = await #expect(throws: MissionError.self) { try await open(key: other) }
      #expect(failure?.kind == .wrongKey)
    }
    missions = try await open(key: key)
    #expect(try await missions.waitUntilIdle("course-7").first?.state == .done)
    #expect(try !isPlainAnywhere())
    #expect(try await missions.content(of: "film.mp4", in: "course-7").readAll() == world.film)
    await missions.close()
  }

  private func isPlainAnywhere() throws -> Bool {
    let probe = Data(world.film[1_000_000..<1_000_064])
    let image = Data(world.image[1_000..<1_064])
    let files = FileManager.default.enumerator(atPath: folder)
    while let name = files?.nextObject() as? String {
      guard let found = FileManager.default.contents(atPath: "\(folder)/\(name)") else { continue }
      if found.range(of: probe) != nil || found.range(of: image) != nil { return true }
    }
    return false
  }

  @Test("a damaged item is fetched again from its own address")
  func repaired() async throws {
    let missions = try await open()
    try await missions.add(mission([image, lessons]))
    try await missions.waitUntilIdle("course-7")
    let items = try await missions.items("course-7")
    for item in items {
      let path = try #require(item.localPath)
      chmod(path, 0o600)
      try Data("wrong".utf8).write(to: URL(filePath: path))
    }
    #expect(try await missions.verify("course-7").damaged.count == 2)
    let report = try await missions.verify("course-7", repairing: true)
    #expect(report.isRepaired)
    #expect(try await missions.verify("course-7").isIntact)
    await missions.close()
  }

  @Test("a folder in use is refused to a second process")
  func locked() async throws {
    let missions = try await open()
    let failure = await #expect(throws: MissionError.self) { try await open() }
    #expect(failure?.kind == .busy)
    await missions.close()
    try await open().close()
  }
}
