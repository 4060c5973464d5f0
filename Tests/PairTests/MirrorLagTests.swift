import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// The figures of mirrors that a server runs, with real servers and databases.
@Suite("Lags of mirrors in a server's metrics", .hangLimit)
struct MirrorLagTests {
  private typealias Stage = MirrorTests.Stage

  /// Waits until a sample of the metrics holds.
  private func expect(
    _ name: String, of server: Server, _ holds: @escaping @Sendable (Double) -> Bool
  ) async throws {
    let start = "\(name){mirror=\"crm\"} "
    try await eventually("\(name) holds") {
      let page = try await Wire.send(.get, "\(server.url)/metrics").text
      let line = page.split(separator: "\n").first { $0.hasPrefix(start) }
      return line.flatMap { Double($0.dropFirst(start.count)) }.map(holds) ?? false
    }
  }

  @Test("a write that cannot reach the space has a growing lag, and none once it has arrived")
  func lags() async throws {
    let stage = try await Stage.make()
    let server = try await Server.start(
      .embedded, ["--mirror", "crm", "--mirrors", stage.mirrors.url.path])
    try await expect("ferry_mirror_last_round_timestamp_seconds", of: server) { $0 > 1e9 }
    try await expect("ferry_mirror_send_lag_seconds", of: server) { $0 == 0 }
    try await expect("ferry_mirror_apply_lag_seconds", of: server) { $0 == 0 }
    let page = try await Wire.send(.get, "\(server.url)/metrics").text
    #expect(page.contains("ferry_mirror_info{mirror=\"crm\",space=\"\(Device.space)\"} 1\n"))
    #expect(!page.contains("ferry_mirror_log_"))
    try await stage.server.kill()
    try stage.sql("INSERT INTO app.tasks(id, title) VALUES ('a', 'one')")
    try await expect("ferry_mirror_captured_writes", of: server) { $0 == 1 }
    try await expect("ferry_mirror_send_lag_seconds", of: server) { $0 > 0.5 }
    try await server.kill()
  }
}
