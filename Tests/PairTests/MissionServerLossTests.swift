import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Downloads whose server is killed, or stopped, in the middle.
@Suite(.serialized, .hangLimit)
struct MissionServerLossTests {
  /// Bytes a second that leave seconds between a third of the content and the end. So a fault of
  /// the server takes effect in between on a busy machine, too.
  private static let rate = "4MiB"

  @Test("a download waits for a killed server and fetches nothing twice")
  func killed() async throws {
    let stage = try await MissionStage.make(mebibytes: 32, isTight: true)
    let run = try stage.download("--watch", "--limit-rate", Self.rate)
    for part in 1...2 {
      try await run.reached(stage.size * part / 3)
      try await stage.server.kill()
      try await stage.server.start()
    }
    try await run.ends()
    #expect(try run.fetched() <= stage.bound)
    expectSteady(try run.progress())
    try await stage.expectWhole()
  }

  @Test("a download gives up if the server does not return, and the next command continues it")
  func gone() async throws {
    let stage = try await MissionStage.make(mebibytes: 32, isTight: true)
    let run = try stage.download("--wait", "10s", "--limit-rate", Self.rate)
    try await run.reached(stage.size / 3)
    try await stage.server.kill()
    try await run.ends(with: 3)
    #expect(try await stage.device.mission(MissionStage.mission).text("state") == "downloading")
    try await stage.server.start()
    let again = try stage.download()
    try await again.ends()
    #expect(try run.fetched() + again.fetched() <= stage.bound)
    expectSteady(try run.progress() + again.progress())
    try await stage.expectWhole()
  }

  @Test("a download reports a stalled server, and waits until it continues")
  func stopped() async throws {
    let stage = try await MissionStage.make(mebibytes: 32, isTight: true)
    let run = try stage.download("--watch", "--timeout", "3s", "--limit-rate", Self.rate)
    try await run.reached(stage.size / 3)
    stage.server.send(SIGSTOP)
    try await run.changed(to: "downloading", "silent")
    stage.server.send(SIGCONT)
    try await run.ends()
    #expect(try run.fetched() <= stage.bound)
    expectSteady(try run.progress())
    try await stage.expectWhole()
  }

  @Test("a download gives up on a stalled server, and never joins two answers")
  func stoppedForGood() async throws {
    let stage = try await MissionStage.make(mebibytes: 32, isTight: true)
    let run = try stage.download(
      "--wait", "10s", "--timeout", "10s", "--limit-rate", Self.rate)
    try await run.reached(stage.size / 3)
    stage.server.send(SIGSTOP)
    try await run.ends(with: 3)
    // There is no partial content to continue: the next one does not wait long either.
    let vain = try stage.download("--wait", "100ms", "--timeout", "3s")
    try await vain.ends(with: 3)
    // The server now responds to the first process, which is gone.
    stage.server.send(SIGCONT)
    let again = try stage.download()
    try await again.ends()
    #expect(try run.fetched() + again.fetched() <= stage.bound)
    expectSteady(try run.progress() + again.progress())
    try await stage.expectWhole()
  }
}
