import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Downloads whose device is killed, at any moment.
@Suite(.serialized, .hangLimit)
struct MissionKillTests {
  /// The bytes possibly read from a connection by a killed process, but not written. They are a
  /// part under way to the file, a waiting part, and the content of libcurl's buffer.
  private static let lossPerConnection = 192 << 10
  /// The same of a process: a large item has four connections.
  private static let lossPerKill = 4 * lossPerConnection

  /// The state of a download when it is killed.
  private enum Moment {
    /// In the middle of everything, as fast as it can.
    case working
    /// The process has reported progress, and waits for more.
    case told
  }

  /// Downloads until so many bytes have come, and kills the process. Returns the bytes read from
  /// the connections, by the system's remaining buffers, and all reports.
  private func kill(
    _ stage: MissionStage, _ moment: Moment, after bytes: Int
  ) async throws -> (read: Int, told: [MissionRun.Progress]) {
    let proxy = stage.proxy
    let before = proxy.byteCount(.answer)
    // Nothing comes before the trap is set: the process would be at an end by then.
    proxy.set(LinkConditions(answers: .stalled))
    let run = try stage.download()
    switch moment {
    case .working:
      let trap = proxy.trap(
        .answer, of: "/v1/blobs/", after: bytes, .call { run.child.send(SIGSTOP) })
      proxy.set(LinkConditions())
      try await trap.sprung(from: run.child)
    case .told:
      let trap = proxy.trap(
        .answer, of: "/v1/blobs/", after: bytes,
        .call { proxy.set(LinkConditions(answers: .stalled)) })
      proxy.set(LinkConditions())
      try await trap.sprung(from: run.child)
      try await run.fetched(bytes / 2)
    }
    return (try await proxy.kill(run.child) - before, try run.progress())
  }

  @Test("a download that is killed repeatedly fetches almost nothing twice")
  func device() async throws {
    let stage = try await MissionStage.make(mebibytes: 48, isTight: true)
    let kills = 12
    let step = stage.size / (kills + 1)
    var (read, told) = (0, [MissionRun.Progress]())
    for number in 1...kills {
      let life = try await kill(
        stage, number.isMultiple(of: 3) ? .told : .working, after: step)
      read += life.read
      told += life.told
      let path = try await stage.device.ferry("mission", "path", MissionStage.mission, exits: 1)
      #expect(path.output.isEmpty, "a part of a mission is none")
    }
    let before = stage.proxy.byteCount(.answer)
    let last = try stage.download()
    try await last.ends()
    // The proxy counts bytes after it has sent them.
    try await eventually("the connections to end") { stage.proxy.connectionCount == 0 }
    read += stage.proxy.byteCount(.answer) - before
    told += try last.progress()
    #expect(read <= stage.bound + kills * Self.lossPerKill, "\(read - stage.size) bytes twice")
    #expect(read >= stage.size)
    expectSteady(told)
    #expect(told.last?.bytesDone == stage.size)
    try await stage.expectWhole()
  }

  @Test("a download that is killed after its last byte fetches nothing again")
  func atTheEnd() async throws {
    let stage = try await MissionStage.make(mebibytes: 8)
    let run = try stage.download()
    _ = try await run.child.line {
      $0.hasPrefix("{\"event\":\"item\"") && $0.contains("film.mp4")
    }
    run.child.send(SIGKILL)
    _ = try await run.child.exitStatus()
    // The server counts a response after it has gone.
    try await eventually("the film to be counted") { try await stage.server.blobBytes() >= 8 << 20 }
    let before = try await stage.server.blobBytes()
    let again = try stage.download()
    try await again.ends()
    #expect(try await stage.server.blobBytes() - before < 64 << 10)
    expectSteady(try run.progress() + again.progress())
    try await stage.expectWhole()
  }
}
