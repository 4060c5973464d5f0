import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Several `ferry` processes with the same missions.
@Suite(.serialized, .hangLimit)
struct MissionProcessTests {
  @Test("two processes that download a mission at the same time fetch it once, and both succeed")
  func twice() async throws {
    let stage = try await MissionStage.make(mebibytes: 16)
    let runs = try (0..<2).map { _ in try stage.download("--limit-rate", "24MiB") }
    for run in runs { try await run.ends() }
    #expect(try await stage.server.blobBytes() <= stage.bound)
    for run in runs {
      expectSteady(try run.progress())
      #expect(try run.events().last?.text("state") == "done")
    }
    try await stage.expectWhole()
  }

  @Test("when the fetching process is killed, the observing process takes over")
  func takenOver() async throws {
    let stage = try await MissionStage.make(mebibytes: 16)
    // Slow enough for the second one to come in between on a busy machine, too.
    let first = try stage.download("--limit-rate", "2MiB")
    try await first.reached(stage.size / 3)
    let second = try stage.download("--limit-rate", "8MiB")
    try await second.changed(to: "downloading", "another process")
    first.child.send(SIGKILL)
    try await second.ends()
    // Bytes on their way to the killed process count as well, up to the size of a system's buffers.
    #expect(try second.fetched() <= stage.size - stage.size / 3 + stage.size / 100)
    try await stage.expectWhole()
  }

  @Test("another process can pause a download, and resume it")
  func paused() async throws {
    let stage = try await MissionStage.make(mebibytes: 32)
    let run = try stage.download("--limit-rate", "4MiB")
    try await run.reached(stage.size / 8)
    try await stage.device.ferry("mission", "pause", MissionStage.mission)
    try await run.ends()
    #expect(try run.events().last?.text("state") == "paused")
    let rested = try await stage.device.mission(MissionStage.mission)
    let there = try #require(rested.number("bytesDone"))
    #expect(rested.text("state") == "paused" && there < stage.size)
    #expect(there >= stage.size / 8)

    let before = try await stage.server.blobRequests()
    // Neither looking nor a pull lets it go on.
    try await stage.device.exchange("pull")
    #expect(try await stage.device.mission(MissionStage.mission).text("state") == "paused")
    #expect(try await stage.server.blobRequests() == before)
    let resumed = try MissionRun(stage.device, ["resume", MissionStage.mission])
    try await resumed.ends()
    #expect(try run.fetched() + resumed.fetched() <= stage.bound)
    expectSteady(try run.progress() + resumed.progress())
    try await stage.expectWhole()
  }
}
