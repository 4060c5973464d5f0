import Ferry
import FerryTestSupport
import Foundation
import Testing

/// The behaviour of a device without a network, in a real process without one.
@Suite(
  .hangLimit,
  .enabled("needs the right to make a network namespace") { await EmptyNetwork.isPossible })
struct OfflineTests {
  @Test("a sync without a network reports it, keeps the writes, and sends them later")
  func noNetwork() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    // An address that would have to be routed, instead of this machine's own.
    try await device.tamper("UPDATE ferry_replica SET server = 'http://192.0.2.1:8080'")
    try await device.write("INSERT INTO notes VALUES ('a', 'written offline', 1)")
    let ferry = try Executables.ferry()
    let finished = try await ChildProcess.run(
      EmptyNetwork.unshare, ["--net", ferry.path, "--replica", device.path, "sync"],
      directory: device.directory.url)
    #expect(finished.status == .exited(3), "\(finished.error)")
    #expect(
      finished.error.contains("no network reaches 192.0.2.1"),
      "\(finished.error)")
    #expect(try await device.status().pending == 1)
    try await device.open().connect(to: server.url, space: Device.space)
    try await device.ferry("sync")
    #expect(try await device.status().pending == 0)
  }
}

/// Processes without a network.
private enum EmptyNetwork {
  /// Runs a program without a network; even the loopback is down (unshare(1)).
  static let unshare = URL(filePath: "/usr/bin/unshare")

  /// Whether this process may do so.
  static var isPossible: Bool {
    get async {
      let probe = try? await ChildProcess.run(unshare, ["--net", "echo", "yes"])
      return probe?.status == .exited(0)
    }
  }
}
