import Ferry
import FerryTestSupport
import Testing

// Outcomes and withdrawn versions of a replica that watches the space.
extension BundlePairTests {
  /// A replica that watches the space and has a version in use.
  private struct Watching {
    let server: Server
    /// Holds the replica's file.
    let device: Device
    let replica: Replica
    let bundles: Bundles
    let watch: Task<Void, any Error>

    func end() async {
      watch.cancel()
      _ = await watch.result
      await replica.close()
      withExtendedLifetime(device) {}
    }
  }

  private func watching() async throws -> Watching {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await publish("1", on: server)
    let replica = try await device.open()
    let bundles = try await replica.bundles()
    try await replica.sync()
    try await bundles.update("board")
    let watch = Task { try await replica.watch() }
    return Watching(
      server: server, device: device, replica: replica, bundles: bundles, watch: watch)
  }

  @Test("a watching replica reports an outcome although nothing else changes")
  func quiet() async throws {
    let stage = try await watching()
    let (server, bundles) = (stage.server, stage.bundles)
    let board = try #require(try await bundles.active("board"))
    // The first outcome may go with the first sync of a watch.
    try await bundles.confirm(board)
    try await eventually("the success") { try await counts(server) == [[1, 0]] }
    try await bundles.fail(board, reason: "it is blank")
    try await eventually("the failure") { try await counts(server) == [[0, 1]] }
    await stage.end()
  }

  @Test("a watching replica leaves a withdrawn version without another call")
  func withdrawnWhileWatching() async throws {
    let stage = try await watching()
    let (server, bundles) = (stage.server, stage.bundles)
    // A server also sends events about changes it makes itself.
    let withdrawn = try await server.ferryd(
      "bundle", "withdraw", "board", "--space", Device.space, "--server", server.url)
    #expect(withdrawn.status == .exited(0))
    try await eventually("the device to leave the version") {
      try await bundles.active("board") == nil
    }
    await stage.end()
  }
}
