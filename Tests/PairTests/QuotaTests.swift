import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Devices that want to store more than they may.
@Suite(.hangLimit)
struct QuotaTests {
  /// Bytes of a row's body; a packet holds one such row.
  private static let body = "hex(randomblob(450000))"

  private func pair(_ kind: StoreKind) async throws -> (server: Server, device: Device) {
    let server = try await Server.start(kind, "--quota-bytes", "2MiB")
    let device = try await Device.joined(server.url)
    for id in ["a", "b"] {
      try await device.write("INSERT INTO notes VALUES ('\(id)', \(Self.body), 1)")
    }
    try await device.exchange()
    return (server, device)
  }

  @Test(
    "deletes that free storage are sent with the writes that need it", arguments: StoreKind.allCases
  )
  func deletes(_ kind: StoreKind) async throws {
    let (server, device) = try await pair(kind)
    defer { withExtendedLifetime(server) {} }
    try await device.write("INSERT INTO notes VALUES ('c', \(Self.body), 1)")
    try await device.write("INSERT INTO notes VALUES ('d', \(Self.body), 1)")
    let refused = try await device.ferry("sync", exits: 1)
    #expect(refused.error.contains("delete records that you do not need"), "\(refused.error)")
    #expect(try await device.status().pending == 2)
    for id in ["a", "b"] { try await device.write("DELETE FROM notes WHERE id = '\(id)'") }
    try await device.ferry("sync")
    #expect(try await device.status().pending == 0)
    try await device.ferry("verify")
    #expect(try await device.count() == 2)
  }

  @Test("a row that exceeded the quota and is deleted is not sent at all")
  func withdrawn() async throws {
    let (server, device) = try await pair(.embedded)
    defer { withExtendedLifetime(server) {} }
    try await device.write("INSERT INTO notes VALUES ('c', \(Self.body), 1)")
    try await device.ferry("sync", exits: 1)
    try await device.write("DELETE FROM notes WHERE id = 'c'")
    try await device.ferry("sync")
    #expect(try await device.status().pending == 0)
    try await device.ferry("verify")
  }

  @Test("a watch above its quota receives changes, and sends as soon as there is storage")
  func watch() async throws {
    let (server, device) = try await pair(.embedded)
    defer { withExtendedLifetime(server) {} }
    let watch = try device.start("sync", "--watch")
    _ = try await watch.line { $0.hasSuffix("connected") }
    try await device.write("INSERT INTO notes VALUES ('c', \(Self.body), 1)")
    _ = try await watch.line { $0.contains("waiting: ") }
    try await device.write("DELETE FROM notes WHERE id = 'a'")
    try await eventually("the row to be sent", from: watch) {
      try await device.status().pending == 0
    }
    #expect(watch.endedWith == nil)
    watch.send(SIGINT)
    #expect(try await watch.exitStatus() == .exited(0))
  }
}
