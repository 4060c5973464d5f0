import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

@Suite("The mission manager", .hangLimit)
struct MissionManagerTests {
  private let shelf = Shelf()
  private let small = content(1, 10)
  private let large = content(2, 300_000)
  private let offline = DownloadError(.offline, "no network")
  private let wrong = DownloadError(.wrongContent(chunk: 1), "chunk 1 is wrong")

  private func publish(
    _ id: String, version: Int64 = 1, _ files: [(String, [UInt8])]? = nil, after: [String] = [],
    key: Ed25519.SecretKey = Publication.key
  ) {
    let files = files ?? [("a.txt", small), ("media/b.bin", large)]
    shelf.publish(
      Publication(id, version: version, files, after: after, key: key))
  }

  // MARK: Downloading

  @Test("a mission is whole and under its names when it is done")
  func download() async throws {
    publish("m")
    let device = try await Device(shelf)
    #expect(try await device.manager.list().map(\.state) == [nil])
    #expect(try await !device.manager.isDownloaded(mission("m")))
    await #expect(throws: MissionError.self) { try await device.manager.path(mission("m")) }
    let status = try #require(try await device.download("m").first)
    #expect(status.state == .done && status.isDownloaded && !status.hasUpdate)
    #expect(status.bytesDone == status.bytesTotal && status.itemsDone == 2)
    #expect(try await device.read("a.txt", in: "m") == small)
    #expect(try await device.read("media/b.bin", in: "m") == large)
    let opened = try await device.manager.content(of: "media/b.bin", in: mission("m"))
    #expect(try await opened.read(from: 65_000, count: 2_000) == Array(large[65_000..<67_000]))
    // Another request fetches no bytes.
    let before = shelf.order.count
    try await device.download("m")
    #expect(shelf.order.count == before)
    #expect(!device.everything().contains { $0.hasPrefix("partial/") })
  }

  @Test(
    "a mission that waits for an absent one fails alone, with the reason")
  func partly() async throws {
    publish("a", after: ["gone"])
    publish("b", after: ["a"])
    publish("c", [("c.txt", small)])
    let device = try await Device(shelf)
    let ids = ["a", "b", "c"].map(mission)
    await #expect(throws: MissionError.self) { try await device.manager.download(ids) }
    try await device.manager.downloadPartly(ids)
    let found = try await device.manager.waitUntilIdle(ids)
    #expect(found.map(\.state) == [.failed, .failed, .done])
    #expect(found[0].reason?.kind == .dependency)
    #expect(found[0].reason?.message.contains("mission gone") == true)
    #expect(found[1].reason?.message.contains("mission a") == true)
    #expect(try await device.read("c.txt", in: "c") == small)
    // When it has come, all of them can be had.
    publish("gone", [("g.txt", small)])
    try await device.manager.downloadPartly(ids)
    #expect(try await device.manager.waitUntilIdle(ids).map(\.state) == [.done, .done, .done])
  }

  @Test("a mission that is cancelled before its start is not fetched")
  func cancelledAtOnce() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 10))
    let device = try await Device(shelf)
    async let asked: Void = device.manager.download([mission("m")])
    // The queue has started it, and the row shows this before there is a task.
    try await eventually("the start") {
      await device.manager.queue[mission("m")]?.state == .downloading
    }
    try await device.manager.cancel(mission("m"))
    try await asked
    #expect(try await device.manager.waitUntilIdle([mission("m")]).first?.state == .cancelled)
    #expect(device.everything().isEmpty)
  }

  @Test("of two concurrent first missions by different signers, one signer is trusted")
  func firstSigners() async throws {
    let others = Ed25519.SecretKey()
    let one = Publication("m", [("a.txt", small)])
    let two = Publication("n", [("b.bin", large)], key: others)
    for publication in [one, two] {
      shelf.publish(publication)
      shelf.obstruct(publication.document, .waits(forRunning: 2))
    }
    var options = MissionOptions()
    options.missionsAtOnce = 2
    let device = try await Device(shelf, options: options)
    let found = try await device.download("m", "n")
    #expect(found.filter { $0.state == .done }.count == 1)
    #expect(found.filter { $0.reason?.kind == .untrustedSigner }.count == 1)
    #expect(try await device.manager.signers().count == 1)
  }

  @Test("a row without the completion mark exists before anything is fetched")
  func rowFirst() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 100_000))
    let device = try await Device(shelf)
    try await device.manager.download([mission("m")])
    try await device.wait(for: "m") { $0.bytesDone > 0 }
    let row = try #require(try await device.store.missions().first)
    #expect(row.state == .downloading && !row.isComplete && !row.isActive)
    #expect(try await !device.manager.isDownloaded(mission("m")))
    await device.manager.close()
  }

  @Test("states follow their order, and progress never goes back or exceeds the total")
  func events() async throws {
    publish("m")
    shelf.obstruct(large, .fails(offline))
    let device = try await Device(shelf)
    let events = device.manager.events()
    try await device.download("m")
    await device.manager.close()
    var (states, items, last): ([String], [String], Int64) = ([], [], 0)
    for await event in events {
      switch event {
      case .changed(_, let state, let reason):
        states.append(state.rawValue + (reason.map { " \($0.kind.rawValue)" } ?? ""))
      case .progress(let progress):
        #expect(progress.bytesDone >= last && progress.bytesDone <= progress.bytesTotal)
        last = progress.bytesDone
      case .item(_, let path): items.append(path)
      case .removed: break
      }
    }
    #expect(states == ["ready", "downloading", "downloading offline", "downloading", "done"])
    #expect(items.sorted() == ["a.txt", "media/b.bin"])
    #expect(last == 300_010)
  }

  @Test("missions run one after another, predecessors first, and their items in parallel")
  func order() async throws {
    let parts = (0..<12).map { content(100 + $0, 1_000) }
    publish("a", parts[..<6].enumerated().map { ("i\($0)", $1) }, after: ["b"])
    publish("b", parts[6...].enumerated().map { ("i\($0)", $1) })
    for part in parts[6..<10] { shelf.obstruct(part, .waits(forRunning: 4)) }
    let device = try await Device(shelf)
    try await device.download("a")
    #expect(try await device.state("b") == .done)
    let places = shelf.order.compactMap { found in parts.firstIndex { hash($0) == found } }
    #expect(Set(places[..<6]) == Set(6..<12) && Set(places[6...]) == Set(0..<6))
    #expect(shelf.runningMax == 4)
  }

  @Test("content of several items or missions is fetched and stored once")
  func shared() async throws {
    publish("a", [("x", large), ("y", large)])
    publish("b", [("z", large), ("own", small)])
    let device = try await Device(shelf)
    try await device.download("a", "b")
    #expect(shelf.fetches(of: large) == 1)
    try await device.manager.remove(mission("a"))
    #expect(try await device.read("z", in: "b") == large)
    #expect(try await device.manager.verify(mission("b")).isIntact)
    try await device.manager.remove(mission("b"))
    #expect(device.everything().isEmpty)
  }

  // MARK: Failing

  @Test("content that stays wrong fails the mission, names the item, and leaves nothing")
  func wrongContent() async throws {
    publish("m")
    publish("n", after: ["m"])
    shelf.obstruct(large, .fails(wrong))
    let device = try await Device(shelf)
    let statuses = try await device.download("n", "m")
    #expect(statuses.map(\.state) == [.failed, .failed])
    #expect(statuses[0].reason?.kind == .wrongContent)
    #expect(statuses[0].reason?.item == "media/b.bin")
    #expect(statuses[1].reason?.kind == .dependency)
    #expect(try await device.store.missions().isEmpty)
    #expect(device.everything().isEmpty)
    // Another attempt begins from scratch.
    #expect(try await device.download("n").map(\.state) == [.done])
  }

  @Test("a version that fails does not change the active one")
  func failedUpdate() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    let changed = content(3, 300_000)
    publish("m", version: 2, [("a.txt", small), ("media/b.bin", changed)])
    shelf.obstruct(changed, .fails(DownloadError(.server(404), "the server answered 404")))
    let status = try #require(try await device.download("m").first)
    #expect(status.state == .failed && status.reason?.kind == .refused)
    #expect(status.activeVersion == 1 && status.hasUpdate)
    #expect(try await device.read("media/b.bin", in: "m") == large)
    #expect(try await device.manager.verify(mission("m")).isIntact)
  }

  @Test("without a connection a mission waits, reports the reason, and continues later")
  func offlineWaits() async throws {
    publish("m")
    shelf.obstruct(large, .fails(offline), .fails(offline), .fails(offline))
    let device = try await Device(shelf)
    #expect(try await device.download("m").map(\.state) == [.done])
    #expect(shelf.fetches(of: large) == 4)
  }

  @Test("an invalid token pauses a mission, which keeps its received content")
  func forbidden() async throws {
    publish("m")
    shelf.obstruct(large, .fails(DownloadError(.server(403), "the server answered 403")))
    let device = try await Device(shelf)
    let status = try #require(try await device.download("m").first)
    #expect(status.state == .paused && status.reason?.kind == .forbidden)
    #expect(try await device.download("m").map(\.state) == [.done])
    #expect(shelf.fetches(of: small) == 1)
  }

  @Test("a manifest by another signer is refused until the signer is trusted")
  func signer() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    #expect(try await device.manager.signers() == [Publication.key.publicKey.bytes])
    let stranger = Ed25519.SecretKey()
    publish("n", [("x", content(9, 9))], key: stranger)
    let status = try #require(try await device.download("n").first)
    #expect(status.state == .paused && status.reason?.kind == .untrustedSigner)
    #expect(shelf.fetches(of: content(9, 9)) == 0)
    try await device.manager.trust(stranger.publicKey.bytes)
    #expect(try await device.download("n").map(\.state) == [.done])
  }

  @Test("an invalid signature is refused under any trust")
  func signature() async throws {
    let honest = Publication("m", [("x", small)])
    var record = honest.record
    record.signature = Ed25519.SecretKey().sign(honest.document)
    shelf.publish(Publication(honest, record: record))
    let device = try await Device(shelf)
    let status = try #require(try await device.download("m").first)
    #expect(status.reason?.kind == .badSignature)
    #expect(try await device.manager.signers().isEmpty)
    #expect(device.everything().isEmpty)
  }

  @Test("a mission outside of the catalogue cannot be requested")
  func unknown() async throws {
    let device = try await Device(shelf)
    let error = await #expect(throws: MissionError.self) {
      try await device.manager.download([mission("m")])
    }
    #expect(error?.kind == .notFound)
  }

  // MARK: Pausing

  @Test("a paused mission keeps its received content, and continues from there")
  func pause() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 200_000))
    let device = try await Device(shelf)
    try await device.manager.download([mission("m")])
    try await device.wait(for: "m") { $0.bytesDone >= 200_000 }
    try await device.manager.pause(mission("m"))
    #expect(try await device.manager.waitUntilIdle([mission("m")]).map(\.state) == [.paused])
    #expect(try await device.store.missions().map(\.state) == [.paused])
    let before = shelf.bytesFetched
    try await device.manager.resume(mission("m"))
    #expect(try await device.manager.waitUntilIdle([mission("m")]).map(\.state) == [.done])
    // Three chunks of 64 KiB were there.
    #expect(shelf.bytesFetched - before <= 300_000 - 3 * 65_536 + 10)
    #expect(try await device.read("media/b.bin", in: "m") == large)
  }

  @Test("a cancelled mission leaves only its result, and can be requested again")
  func cancel() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 200_000))
    let device = try await Device(shelf)
    try await device.manager.download([mission("m")])
    try await device.wait(for: "m") { $0.bytesDone >= 200_000 }
    try await device.manager.cancel(mission("m"))
    #expect(try await device.manager.waitUntilIdle([mission("m")]).map(\.state) == [.cancelled])
    #expect(device.everything().isEmpty)
    #expect(try await device.store.missions().isEmpty)
    #expect(try await device.download("m").map(\.state) == [.done])
    try await device.manager.remove(mission("m"))
    #expect(try await device.state("m") == nil)
    await #expect(throws: MissionError.self) { try await device.manager.remove(mission("m")) }
  }

  // MARK: Restarts

  @Test("after a restart incomplete missions continue, and paused ones stay paused")
  func restore() async throws {
    publish("m")
    publish("p", [("x", content(4, 5))])
    shelf.obstruct(large, .hangs(after: 200_000))
    let first = try await Device(shelf)
    try await first.manager.download([mission("m"), mission("p")])
    try await first.manager.pause(mission("p"))
    try await first.wait(for: "m") { $0.bytesDone >= 200_000 }
    await first.manager.close()
    let before = shelf.bytesFetched
    let second = try await first.another()
    #expect(try await second.store.missions().map(\.state) == [.downloading, .paused])
    #expect(try await second.manager.restore() == [mission("m"), mission("p")])
    let statuses = try await second.manager.waitUntilIdle([mission("m"), mission("p")])
    #expect(statuses.map(\.state) == [.done, .paused])
    #expect(shelf.bytesFetched - before <= 300_000 - 3 * 65_536)
    #expect(shelf.fetches(of: small) == 1)
  }

  @Test("closing waits for the end of the work, even in a cancelled task")
  func closeWhenCancelled() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 200_000))
    let device = try await Device(shelf)
    try await device.manager.download([mission("m")])
    try await device.wait(for: "m") { $0.bytesDone >= 200_000 }
    await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      await device.manager.close()
    }.value
    #expect(shelf.running == 0)
    #expect(try await device.store.missions().map(\.state) == [.downloading])
  }

  @Test("content without a row, and content that changed, is not used")
  func distrust() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 0))
    let first = try await Device(shelf)
    let items = first.manager.events()
    try await first.manager.download([mission("m")])
    for await event in items { if case .item = event { break } }
    await first.manager.close()
    let path = try #require(first.files.plainPath(of: hash(small)))
    chmod(path, 0o600)
    try Data(content(7, 10)).write(to: URL(fileURLWithPath: path))
    let second = try await first.another()
    try await second.manager.restore()
    #expect(try await second.manager.waitUntilIdle([mission("m")]).map(\.state) == [.done])
    #expect(try await second.read("a.txt", in: "m") == small)
    #expect(shelf.fetches(of: small) == 2)
  }
}
