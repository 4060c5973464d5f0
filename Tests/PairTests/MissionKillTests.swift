import Ferry
import Foundation
import TestSupport
import Testing

/// Downloads whose device is killed, at any moment.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct MissionKillTests {
  /// What a killed process may have read of a connection without having written it: a part that is
  /// written just now, one that waits, and what is in libcurl's buffer.
  private static let lossPerConnection = 192 << 10
  /// The same of a process: a large item has four connections.
  private static let lossPerKill = 4 * lossPerConnection

  /// When a download is killed.
  private enum Moment {
    /// When the server has handed over so many bytes of content more, at full speed.
    case served(Int)
    /// When it tells that so many bytes are there, at a rate that leaves it time to tell.
    case told(Int)
  }

  /// Downloads until a moment, stops there, and kills. Answers with what the process had read from
  /// its connections, by what the system has left of them, and with all that it had told.
  private func kill(
    _ stage: MissionStage, at moment: Moment
  ) async throws -> (read: Int, told: [MissionRun.Progress]) {
    let before = stage.proxy.byteCount(.answer)
    let run: MissionRun
    switch moment {
    case .served(let bytes):
      let trap = stage.proxy.trap(.answer, of: "/v1/blobs/", after: bytes, .tell)
      run = try stage.download()
      try await trap.sprung()
    case .told(let bytes):
      run = try stage.download("--limit-rate", "32MiB")
      try await run.reached(bytes)
    }
    try await run.child.freeze()
    let read = try await stage.proxy.readByteCountAtRest()
    run.child.send(SIGKILL)
    #expect(try await run.child.exitStatus() == .killed(signal: SIGKILL))
    try await eventually("its connections to end") { stage.proxy.connectionCount == 0 }
    return (read - before, try run.progress())
  }

  @Test("a download that is killed again and again fetches next to nothing twice")
  func device() async throws {
    let stage = try await MissionStage.make(mebibytes: 48)
    let kills = 12
    let step = stage.size / (kills + 2)
    var (read, told) = (0, [MissionRun.Progress]())
    for number in 1...kills {
      let moment = number.isMultiple(of: 3) ? Moment.told((number + 1) * step) : .served(step)
      let life = try await kill(stage, at: moment)
      read += life.read
      told += life.told
      let path = try await stage.device.ferry("mission", "path", MissionStage.mission, exits: 1)
      #expect(path.output.isEmpty, "a part of a mission is none")
    }
    let before = stage.proxy.byteCount(.answer)
    let last = try stage.download()
    try await last.ends()
    read += stage.proxy.byteCount(.answer) - before
    told += try last.progress()
    #expect(read <= stage.bound + kills * Self.lossPerKill, "\(read - stage.size) bytes twice")
    #expect(read >= stage.size)
    expectSteady(told)
    #expect(told.last?.bytesDone == stage.size)
    try await stage.expectWhole()
  }

  @Test("a download that is killed when all has come fetches nothing of it again")
  func atTheEnd() async throws {
    let stage = try await MissionStage.make(mebibytes: 8)
    let run = try stage.download()
    _ = try await run.child.line(within: .seconds(60)) {
      $0.hasPrefix("{\"event\":\"item\"") && $0.contains("film.mp4")
    }
    run.child.send(SIGKILL)
    _ = try await run.child.exitStatus()
    let before = try await stage.server.blobBytes()
    let again = try stage.download()
    try await again.ends()
    #expect(try await stage.server.blobBytes() - before < 64 << 10)
    expectSteady(try run.progress() + again.progress())
    try await stage.expectWhole()
  }
}
