import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

@Suite("Keeping, updating and sharing missions", .hangLimit)
struct MissionKeepingTests {
  private let shelf = Shelf()
  private let small = content(1, 10)
  private let large = content(2, 300_000)

  private func publish(
    _ id: String, version: Int64 = 1, _ files: [(String, [UInt8])]? = nil,
    url: ((String) -> String?)? = nil
  ) {
    let files = files ?? [("a.txt", small), ("media/b.bin", large)]
    shelf.publish(Publication(id, version: version, files, url: url))
  }

  // MARK: Versions

  @Test("a version that a restored server published again is noticed and fetched")
  func republished() async throws {
    publish("m", [("a.txt", small), ("b.bin", large)])
    let device = try await Device(shelf)
    try await device.download("m")
    let former = try await device.manager.path(mission("m"))
    var changed = large
    changed[70_000] ^= 1
    publish("m", [("a.txt", small), ("b.bin", changed)])
    #expect(try await device.manager.mission(mission("m")).hasUpdate)
    let before = shelf.bytesFetched
    let status = try #require(try await device.download("m").first)
    #expect(status.state == .done && status.version == 1 && !status.hasUpdate)
    #expect(try await device.read("b.bin", in: "m") == changed)
    #expect(shelf.bytesFetched < before + 100_000, "chunks of the former are taken over")
    #expect(FileManager.default.contents(atPath: former + "/b.bin") == Data(large))
    #expect(try await device.manager.verify(mission("m")).isIntact)
    // Another process finds it, and the next version counts on from it.
    let other = try await device.another()
    try await other.manager.restore()
    #expect(try await other.read("b.bin", in: "m") == changed)
    publish("m", version: 2, [("a.txt", small)])
    try await device.download("m")
    #expect(try await device.read("a.txt", in: "m") == small)
    #expect(!FileManager.default.fileExists(atPath: former))
    #expect(try await device.store.missions().map(\.record.version) == [1, 2])
  }

  @Test("a version that is published again after another of its number is activated again")
  func back() async throws {
    publish("m", [("a.txt", small)])
    let device = try await Device(shelf)
    try await device.download("m")
    publish("m", [("a.txt", large)])
    try await device.download("m")
    publish("m", [("a.txt", small)])
    #expect(try await device.manager.mission(mission("m")).hasUpdate)
    let before = shelf.order.count
    try await device.download("m")
    #expect(try await device.read("a.txt", in: "m") == small)
    #expect(try await !device.manager.mission(mission("m")).hasUpdate)
    #expect(shelf.order.count == before, "all of it was here")
  }

  @Test("a row that cannot be read for a moment does not end a download")
  func unreadableRow() async throws {
    shelf.publish(Publication("m", [("a.txt", small), ("media/b.bin", large)]))
    shelf.obstruct(large, .hangs(after: 100_000))
    let device = try await Device(shelf)
    try await device.manager.download([mission("m")])
    try await device.wait(for: "m") { $0.bytesDone > 0 }
    let other = try SQLiteConnection(path: device.store.path)
    try other.execute("UPDATE missions SET state = 'of a later version'")
    // Turns enough for the manager to have looked at it.
    for _ in 0..<2_000 { _ = try await device.store.dataVersion() }
    try other.execute("UPDATE missions SET state = 'paused'")
    try await device.wait(for: "m") { $0.state != .downloading }
    #expect(try await device.state("m") == .paused)
    #expect(try await device.store.missions().count == 1)
  }

  @Test("a new version fetches only its missing chunks, and is whole or absent")
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
    // Readers of the old version still can read it.
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

  @Test("a retracted mission that is stored here stays")
  func retracted() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    shelf.retract("m")
    let status = try await device.manager.mission(mission("m"))
    #expect(status.isDownloaded && status.publishedVersion == nil && !status.hasUpdate)
    #expect(try await device.read("a.txt", in: "m") == small)
  }

  @Test("content stays if a manifest that names it arrives between the rows' and its own removal")
  func namedMeanwhile() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    // Another mission's row appears as soon as the content is forgotten.
    let other = try SQLiteConnection(path: device.store.path)
    try other.execute(
      """
      CREATE TRIGGER arrival AFTER DELETE ON objects WHEN OLD.size = 300000 BEGIN
        INSERT INTO files(mission, version, place, path, kind, media_type, size, hash)
        VALUES ('n', 1, 0, 'b.bin', 'file', '', OLD.size, OLD.hash);
      END
      """)
    try await device.manager.remove(mission("m"))
    try other.execute("DROP TRIGGER arrival")
    #expect(device.everything().map { ($0 as NSString).lastPathComponent } == ["\(hash(large))"])
    publish("n", [("b.bin", large)])
    try await device.download("n")
    #expect(try await device.read("b.bin", in: "n") == large)
    #expect(shelf.fetches(of: large) == 1)
  }

  // MARK: Keeping

  @Test("damage is found, and repaired on request")
  func verify() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    #expect(try await device.manager.verify(mission("m")).isIntact)
    let folder = try await device.manager.path(mission("m"))
    try await device.damage("media/b.bin", of: "m", with: [large[5] ^ 255], at: 5)
    try FileManager.default.removeItem(atPath: folder + "/a.txt")
    let found = try await device.manager.verify(mission("m"))
    #expect(found.damaged == ["media/b.bin"] && found.fault?.item == "a.txt")
    #expect(!found.isRepaired && found.bytes == 300_010)
    #expect(try await device.manager.verify(mission("m"), repairing: true).isRepaired)
    #expect(try await device.manager.verify(mission("m")).isIntact)
    #expect(try await device.read("media/b.bin", in: "m") == large)
    #expect(try await device.read("a.txt", in: "m") == small)
  }

  @Test("a mission's file is found by its address as long as it is stored")
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

  @Test("encrypted content is never plain at rest, is readable with its key, and only with it")
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

  @Test("a process does not fetch another process's mission: it observes, and takes over")
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
    #expect(try await second.manager.waitUntilIdle([mission("m")]).map(\.state) == [.done])
    #expect(shelf.fetches(of: large) == 2 && shelf.fetches(of: small) == 1)
  }

  @Test("an observing process ends when the other process has finished")
  func lookingOn() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 200_000))
    let first = try await Device(shelf)
    let second = try await first.another()
    try await first.manager.download([mission("m")])
    try await first.wait(for: "m") { $0.bytesDone >= 200_000 }
    try await second.manager.download([mission("m")])
    try await second.wait(for: "m") { $0.reason?.kind == .busy }
    // The other process's requests reach the fetching process.
    let third = try await first.another()
    try await third.manager.pause(mission("m"))
    #expect(try await first.manager.waitUntilIdle([mission("m")]).map(\.state) == [.paused])
    #expect(try await second.manager.waitUntilIdle([mission("m")]).map(\.state) == [.paused])
    try await third.manager.resume(mission("m"))
    #expect(try await third.manager.waitUntilIdle([mission("m")]).map(\.state) == [.done])
    #expect(try await second.state("m") == .done)
    await #expect(throws: MissionError.self) { try await third.manager.pause(mission("m")) }
  }

  @Test("another process can cancel a download of this one")
  func cancelledElsewhere() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 200_000))
    let first = try await Device(shelf)
    try await first.manager.download([mission("m")])
    try await first.wait(for: "m") { $0.bytesDone >= 200_000 }
    try await first.another().manager.cancel(mission("m"))
    #expect(try await first.manager.waitUntilIdle([mission("m")]).map(\.state) == [.cancelled])
    #expect(first.everything().isEmpty)
  }

  @Test("a later version that another process requests replaces the running download")
  func supersededElsewhere() async throws {
    publish("m")
    shelf.obstruct(large, .hangs(after: 200_000))
    let first = try await Device(shelf)
    try await first.manager.download([mission("m")])
    try await first.wait(for: "m") { $0.bytesDone >= 200_000 }
    publish("m", version: 2)
    let second = try await first.another()
    try await second.manager.download([mission("m")])
    #expect(try await second.manager.waitUntilIdle([mission("m")]).map(\.state) == [.done])
    _ = try await first.manager.waitUntilIdle([mission("m")])
    #expect(try await first.store.missions().map(\.record.version) == [2])
    #expect(try await second.read("media/b.bin", in: "m") == large)
  }

  // MARK: Room

  @Test("without enough space a mission pauses before anything is fetched, with the reason")
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

  @Test("a disk that becomes full pauses a mission, which continues when there is space")
  func fullDisk() async throws {
    publish("m")
    shelf.obstruct(large, .fails(DownloadError(.diskFull, "no space left on device")))
    let device = try await Device(shelf)
    let status = try #require(try await device.download("m").first)
    #expect(status.state == .paused && status.reason?.kind == .diskFull)
    #expect(status.reason?.item == "media/b.bin")
    try await device.manager.resume(mission("m"))
    #expect(try await device.manager.waitUntilIdle([mission("m")]).map(\.state) == [.done])
    #expect(shelf.fetches(of: small) == 1)
  }

  @Test("a mission can have thousands of small items")
  func manyItems() async throws {
    let files = (0..<2_000).map { ("d\($0 % 100)/f\($0)", Array("item \($0)".utf8)) }
    publish("m", files)
    let device = try await Device(shelf)
    #expect(try await device.download("m").map(\.state) == [.done])
    #expect(try await device.read("d7/f1207", in: "m") == Array("item 1207".utf8))
  }
}
