import Cryptography
import FerryProtocol
import Foundation
import Testing

@testable import Missions

@Suite("Mission manager", .timeLimit(.minutes(2)))
struct MissionManagerTests {
  private let shelf = Shelf()
  private let small = content(1, 10)
  private let large = content(2, 300_000)
  private let offline = DownloadError(.offline, "no network")
  private let wrong = DownloadError(.wrongContent(chunk: 1), "chunk 1 is wrong")

  private func publish(
    _ id: String, version: Int64 = 1, _ files: [(String, [UInt8])]? = nil, after: [String] = [],
    url: ((String) -> String?)? = nil, key: Ed25519.SecretKey = Publication.key
  ) {
    let files = files ?? [("a.txt", small), ("media/b.bin", large)]
    shelf.publish(
      Publication(id, version: version, files, after: after, url: url, key: key))
  }

  // MARK: Downloading

  @Test("a mission is there whole, under its names, when it is done")
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
    // Asking again fetches nothing.
    let before = shelf.order.count
    try await device.download("m")
    #expect(shelf.order.count == before)
    #expect(!device.everything().contains { $0.hasPrefix("partial/") })
  }

  @Test("before anything is fetched there is a row, and it is not complete")
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

  @Test("states come in their order, and progress never goes back nor over the whole")
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

  @Test("missions come one after another, those that come first first, their items side by side")
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

  @Test("content that several items or missions have is fetched and kept once")
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
    // Another attempt begins anew.
    #expect(try await device.download("n").map(\.state) == [.done])
  }

  @Test("a version that fails leaves the one in use as it is")
  func failedUpdate() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    let changed = content(3, 300_000)
    publish("m", version: 2, [("a.txt", small), ("media/b.bin", changed)])
    shelf.obstruct(changed, .fails(DownloadError(.server(403), "the server answered 403")))
    let status = try #require(try await device.download("m").first)
    #expect(status.state == .failed && status.reason?.kind == .refused)
    #expect(status.activeVersion == 1 && status.hasUpdate)
    #expect(try await device.read("media/b.bin", in: "m") == large)
    #expect(try await device.manager.verify(mission("m")).isIntact)
  }

  @Test("without a connection it waits, tells why, and goes on with what it has")
  func offlineWaits() async throws {
    publish("m")
    shelf.obstruct(large, .fails(offline), .fails(offline), .fails(offline))
    let device = try await Device(shelf)
    #expect(try await device.download("m").map(\.state) == [.done])
    #expect(shelf.fetches(of: large) == 4)
  }

  @Test("a manifest by another signer is refused until that one is trusted")
  func signer() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    #expect(try await device.manager.signers() == [Publication.key.publicKey.bytes])
    let stranger = Ed25519.SecretKey()
    publish("n", [("x", content(9, 9))], key: stranger)
    let status = try #require(try await device.download("n").first)
    #expect(status.state == .failed && status.reason?.kind == .untrustedSigner)
    #expect(shelf.fetches(of: content(9, 9)) == 0)
    try await device.manager.trust(stranger.publicKey.bytes)
    #expect(try await device.download("n").map(\.state) == [.done])
  }

  @Test("a signature that is not its signer's is refused, whoever is trusted")
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

  @Test("what is not in the catalogue cannot be asked for")
  func unknown() async throws {
    let device = try await Device(shelf)
    let error = await #expect(throws: MissionError.self) {
      try await device.manager.download([mission("m")])
    }
    #expect(error?.kind == .notFound)
  }

  // MARK: Pausing

  @Test("a paused mission keeps what it has, and goes on from there")
  func pause() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 200_000))
    let device = try await Device(shelf)
    try await device.manager.download([mission("m")])
    try await device.wait(for: "m") { $0.bytesDone >= 200_000 }
    try await device.manager.pause(mission("m"))
    #expect(try await device.manager.settled([mission("m")]).map(\.state) == [.paused])
    #expect(try await device.store.missions().map(\.state) == [.paused])
    let before = shelf.bytesFetched
    try await device.manager.resume(mission("m"))
    #expect(try await device.manager.settled([mission("m")]).map(\.state) == [.done])
    // Three chunks of 64 KiB were there.
    #expect(shelf.bytesFetched - before <= 300_000 - 3 * 65_536 + 10)
    #expect(try await device.read("media/b.bin", in: "m") == large)
  }

  @Test("a cancelled mission leaves nothing but how it ended, and can be asked for again")
  func cancel() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 200_000))
    let device = try await Device(shelf)
    try await device.manager.download([mission("m")])
    try await device.wait(for: "m") { $0.bytesDone >= 200_000 }
    try await device.manager.cancel(mission("m"))
    #expect(try await device.manager.settled([mission("m")]).map(\.state) == [.cancelled])
    #expect(device.everything().isEmpty)
    #expect(try await device.store.missions().isEmpty)
    #expect(try await device.download("m").map(\.state) == [.done])
    try await device.manager.remove(mission("m"))
    #expect(try await device.state("m") == nil)
    await #expect(throws: MissionError.self) { try await device.manager.remove(mission("m")) }
  }

  // MARK: Restarts

  @Test("after a restart incomplete missions go on where they were, and paused ones rest")
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
    let statuses = try await second.manager.settled([mission("m"), mission("p")])
    #expect(statuses.map(\.state) == [.done, .paused])
    #expect(shelf.bytesFetched - before <= 300_000 - 3 * 65_536)
    #expect(shelf.fetches(of: small) == 1)
  }

  @Test("content whose row was lost, or which is not what it was, is not believed")
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
    #expect(try await second.manager.settled([mission("m")]).map(\.state) == [.done])
    #expect(try await second.read("a.txt", in: "m") == small)
    #expect(shelf.fetches(of: small) == 2)
  }

  // MARK: Versions

  @Test("a new version fetches only the chunks that it lacks, and is there whole or not at all")
  func update() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    let old = try await device.manager.path(mission("m"))
    var changed = large
    changed[100_000] ^= 1
    publish("m", version: 2, [("a.txt", small), ("media/b.bin", changed)])
    #expect(try await device.manager.mission(mission("m")).hasUpdate)
    let before = shelf.bytesFetched
    try await device.download("m")
    let document = Publication(
      "m", version: 2, [("a.txt", small), ("media/b.bin", changed)]
    ).document
    #expect(shelf.bytesFetched - before == 65_536 + document.count)
    #expect(try await device.read("media/b.bin", in: "m") == changed)
    // Who reads the old version still can.
    let kept = FileManager.default.contents(atPath: old + "/media/b.bin")
    #expect(kept == Data(large))
    publish("m", version: 3, [("a.txt", small)])
    try await device.download("m")
    #expect(!FileManager.default.fileExists(atPath: old))
    #expect(try await device.store.missions().map(\.record.version) == [2, 3])
    publish("m", version: 4, [("b.txt", small)])
    try await device.download("m")
    #expect(!device.everything().contains { $0.contains(hash(changed).description) })
  }

  @Test("a retracted mission that is here stays")
  func retracted() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    shelf.retract("m")
    let status = try await device.manager.mission(mission("m"))
    #expect(status.isDownloaded && status.publishedVersion == nil && !status.hasUpdate)
    #expect(try await device.read("a.txt", in: "m") == small)
  }

  // MARK: Keeping

  @Test("damage is found, and mended when asked to")
  func verify() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    #expect(try await device.manager.verify(mission("m")).isIntact)
    let folder = try await device.manager.path(mission("m"))
    chmod(folder + "/media/b.bin", 0o600)
    let file = try #require(FileHandle(forUpdatingAtPath: folder + "/media/b.bin"))
    try file.seek(toOffset: 5)
    try file.write(contentsOf: Data([large[5] ^ 255]))
    try file.close()
    try FileManager.default.removeItem(atPath: folder + "/a.txt")
    let found = try await device.manager.verify(mission("m"))
    #expect(found.damaged == ["media/b.bin"] && found.fault?.item == "a.txt")
    #expect(!found.isMended && found.bytes == 300_010)
    #expect(try await device.manager.verify(mission("m"), mending: true).isMended)
    #expect(try await device.manager.verify(mission("m")).isIntact)
    #expect(try await device.read("media/b.bin", in: "m") == large)
    #expect(try await device.read("a.txt", in: "m") == small)
  }

  @Test("what a mission brought is found by its address, as long as it is there")
  func pinned() async throws {
    let url: (String) -> String? = { "https://example.org/\($0)" }
    publish("m", url: url)
    let device = try await Device(shelf)
    #expect(try await device.manager.item(for: "https://example.org/a.txt") == nil)
    try await device.download("m")
    let item = try #require(
      try await device.manager.item(for: "https://example.org/media/b.bin"))
    #expect(try await item.content.readAll() == large)
    #expect(item.mediaType == "application/octet-stream" && item.completedAt > 0)
    #expect(try await device.manager.item(for: "https://example.org/other") == nil)
    try await device.manager.remove(mission("m"))
    #expect(try await device.manager.item(for: "https://example.org/a.txt") == nil)
  }

  @Test("sealed content is never plain at rest, is read through the library, and needs its key")
  func sealed() async throws {
    publish("m")
    let device = try await Device(shelf, key: DiskFileStoreTests.key)
    #expect(try await device.download("m").map(\.state) == [.done])
    await #expect(throws: MissionError.self) { try await device.manager.path(mission("m")) }
    let opened = try await device.manager.content(of: "media/b.bin", in: mission("m"))
    #expect(try await opened.readAll() == large)
    #expect(try await device.manager.verify(mission("m")).isIntact)
    for path in device.everything() {
      let bytes = FileManager.default.contents(atPath: "\(device.folder.path)/content/\(path)")
      #expect(bytes?.range(of: Data(large[..<64])) == nil)
    }
    var changed = large
    changed[100_000] ^= 1
    publish("m", version: 2, [("a.txt", small), ("media/b.bin", changed)])
    let before = shelf.bytesFetched
    try await device.download("m")
    #expect(shelf.bytesFetched - before < 70_000)
    let later = try await device.manager.content(of: "media/b.bin", in: mission("m"))
    #expect(try await later.readAll() == changed)
    let error = await #expect(throws: MissionError.self) { try await device.another() }
    #expect(error?.kind == .wrongKey)
  }

  // MARK: Two processes

  @Test("what one process fetches, another does not: it looks on, and takes over in the end")
  func twoProcesses() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 200_000))
    let first = try await Device(shelf)
    let second = try await first.another()
    try await first.manager.download([mission("m")])
    try await first.wait(for: "m") { $0.bytesDone >= 200_000 }
    try await second.manager.download([mission("m")])
    try await second.wait(for: "m") { $0.reason?.kind == .busy }
    #expect(shelf.fetches(of: large) == 1)
    await first.manager.close()
    #expect(try await second.manager.settled([mission("m")]).map(\.state) == [.done])
    #expect(shelf.fetches(of: large) == 2 && shelf.fetches(of: small) == 1)
  }

  @Test("a process that looks on is done when the other one is")
  func lookingOn() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 200_000))
    let first = try await Device(shelf)
    let second = try await first.another()
    try await first.manager.download([mission("m")])
    try await first.wait(for: "m") { $0.bytesDone >= 200_000 }
    try await second.manager.download([mission("m")])
    try await second.wait(for: "m") { $0.reason?.kind == .busy }
    // The other process's words reach the one that fetches.
    let third = try await first.another()
    try await third.manager.pause(mission("m"))
    #expect(try await first.manager.settled([mission("m")]).map(\.state) == [.paused])
    #expect(try await second.manager.settled([mission("m")]).map(\.state) == [.paused])
    try await third.manager.resume(mission("m"))
    #expect(try await third.manager.settled([mission("m")]).map(\.state) == [.done])
    #expect(try await second.state("m") == .done)
    await #expect(throws: MissionError.self) { try await third.manager.pause(mission("m")) }
  }

  @Test("another process can cancel what this one fetches")
  func cancelledElsewhere() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 200_000))
    let first = try await Device(shelf)
    try await first.manager.download([mission("m")])
    try await first.wait(for: "m") { $0.bytesDone >= 200_000 }
    try await first.another().manager.cancel(mission("m"))
    #expect(try await first.manager.settled([mission("m")]).map(\.state) == [.cancelled])
    #expect(first.everything().isEmpty)
  }

  @Test("a later version that another process asks for takes the place of the one under way")
  func supersededElsewhere() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 200_000))
    let first = try await Device(shelf)
    try await first.manager.download([mission("m")])
    try await first.wait(for: "m") { $0.bytesDone >= 200_000 }
    publish("m", version: 2)
    let second = try await first.another()
    try await second.manager.download([mission("m")])
    #expect(try await second.manager.settled([mission("m")]).map(\.state) == [.done])
    _ = try await first.manager.settled([mission("m")])
    #expect(try await first.store.missions().map(\.record.version) == [2])
    #expect(try await second.read("media/b.bin", in: "m") == large)
  }

  // MARK: Room

  @Test("where there is no room it rests before anything is fetched, with the reason")
  func noRoom() async throws {
    let huge = MissionManifest(
      space: spaceName, id: mission("m"), version: 1, chunkSize: 64 << 20,
      items: (0..<8).map { index in
        MissionItem(
          path: "f\(index)", size: 1 << 42, hash: hash([UInt8(index)]), url: "https://example.org",
          isHosted: false)
      })
    shelf.publish(Publication(huge))
    let device = try await Device(shelf)
    let status = try #require(try await device.download("m").first)
    #expect(status.state == .paused && status.reason?.kind == .diskFull)
    #expect(shelf.order.count == 1)
    #expect(try await device.store.missions().map(\.reason?.kind) == [.diskFull])
  }

  @Test("a disk that fills up lets a mission rest, which goes on when there is room")
  func fullDisk() async throws {
    publish("m")
    shelf.obstruct(large, .fails(DownloadError(.diskFull, "no space left on device")))
    let device = try await Device(shelf)
    let status = try #require(try await device.download("m").first)
    #expect(status.state == .paused && status.reason?.kind == .diskFull)
    #expect(status.reason?.item == "media/b.bin")
    try await device.manager.resume(mission("m"))
    #expect(try await device.manager.settled([mission("m")]).map(\.state) == [.done])
    #expect(shelf.fetches(of: small) == 1)
  }

  @Test("thousands of small items are one mission")
  func manyItems() async throws {
    let files = (0..<2_000).map { ("d\($0 % 100)/f\($0)", Array("item \($0)".utf8)) }
    publish("m", files)
    let device = try await Device(shelf)
    #expect(try await device.download("m").map(\.state) == [.done])
    #expect(try await device.read("d7/f1207", in: "m") == Array("item 1207".utf8))
  }
}
