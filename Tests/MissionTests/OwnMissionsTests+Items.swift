import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissions

// Items paused or cancelled alone.
extension OwnMissionsTests {
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
}
