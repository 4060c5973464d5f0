import FerryTestSupport
import Testing

@testable import FerryMissions

// The limits of published missions, for composed ones.
extension OwnMissionsTests {
  @Test("so many missions are fetched at once, and so many items of each", arguments: [1, 2])
  func atOnce(count: Int) async throws {
    world.cut.withLock { $0 = 2_000_000 }
    var options = MissionOptions()
    (options.missionsAtOnce, options.itemsAtOnce) = (count, 1)
    let missions = try await open(options: options)
    try await missions.add(OwnMission("first", items: [film, image]))
    try await missions.add(OwnMission("second", items: [image]))
    let stuck = try #require(try await missions.download(of: "film.mp4", in: "first"))
    let next = try #require(try await missions.download(of: "image.png", in: "first"))
    #expect(stuck.state == .downloading && next.state == .ready)
    if count == 1 {
      #expect(try await missions.download(of: "image.png", in: "second")?.state == .ready)
      // Only paused items are left of the first mission: it delays no other.
      try await stuck.pause()
    }
    #expect(try await missions.waitUntilIdle("second").first?.state == .done)
    #expect(stuck.state == (count == 1 ? .paused : .downloading))
    #expect(try await !missions.isDownloaded("first"))
    await missions.close()
  }

  @Test("a mission pauses before an item fills the disk, and continues when there is room")
  func fullDisk() async throws {
    let calls = CountingFileCalls()
    var options = MissionOptions()
    options.spaceMargin = 1_000_000
    calls.space.withLock { $0 = 5_000_000 }
    let missions = try await open(options: options, system: calls)
    try await missions.add(mission([film]))
    let status = try await missions.waitUntilIdle("course-7").first
    #expect(status?.state == .paused)
    #expect(status?.reason?.kind == .diskFull)
    #expect(calls.bytesWritten < 100_000, "nothing of the film was written")
    // For the film and the margin; an item moved into the mission needs no room once more.
    calls.space.withLock { $0 = 10_500_000 }
    try await missions.resume("course-7")
    #expect(try await missions.waitUntilIdle("course-7").first?.state == .done)
    await missions.close()
  }
}
