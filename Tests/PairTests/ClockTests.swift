import Ferry
import FerryNetworking
import FerrySyncClient
import FerryTestSupport
import Foundation
import Synchronization
import Testing

/// Wrong clocks: never refused, never in the way of convergence, and reported.
@Suite(.hangLimit)
struct ClockTests {
  private static let year: Int64 = 365 * 24 * 3_600_000

  /// Creates a replica whose clock is wrong by `offset` milliseconds and moves by `step` with each
  /// look.
  private func device(
    _ url: String, offset: Int64, step: Int64 = 0
  ) async throws -> (TemporaryDirectory, Replica) {
    let directory = try TemporaryDirectory()
    var surroundings = ReplicaSurroundings.system
    let clock = WrongClock(offset: offset, step: step)
    surroundings.wallClock = { clock.milliseconds() }
    let replica = try await Replica.open(
      directory.file("replica.db").path, transport: CurlTransport(), in: surroundings)
    try await replica.write { try $0.execute(Device.notes) }
    try await replica.track("notes")
    try await replica.connect(to: url, space: Device.space)
    return (directory, replica)
  }

  private func rows(_ replica: Replica) async throws -> [[Value]] {
    try await replica.read { try $0.query("SELECT * FROM notes ORDER BY id").map(\.values) }
  }

  @Test("clocks ten years ahead, ten years behind and running backwards converge with a warning")
  func wrongClocks() async throws {
    let server = try await Server.start()
    let devices = [
      try await device(server.url, offset: 10 * Self.year),
      try await device(server.url, offset: -10 * Self.year),
      try await device(server.url, offset: 0, step: -60_000),
      try await device(server.url, offset: 0),
    ]
    for round in 0..<4 {
      for (index, (_, replica)) in devices.enumerated() {
        try await replica.write { database in
          try database.execute(
            """
            INSERT INTO notes VALUES ('shared', ?1, ?2)
            ON CONFLICT(id) DO UPDATE SET body = ?1, n = ?2
            """, [.text("\(index) in \(round)"), .integer(Int64(index))])
          try database.execute(
            "INSERT INTO notes VALUES (?, 'own', ?)",
            [.text("\(index)-\(round)"), .integer(Int64(round))])
        }
      }
      for (_, replica) in devices { try await replica.sync() }
    }
    for (_, replica) in devices + devices { try await replica.sync() }
    let first = try await rows(devices[0].1)
    #expect(first.count == 17)
    for (_, replica) in devices {
      #expect(try await rows(replica) == first)
      #expect(try await replica.status().pending == 0)
    }
    // A write after all devices have synced is later than all before, on every device.
    try await devices[1].1.write {
      try $0.execute("UPDATE notes SET body = 'last' WHERE id = 'shared'")
    }
    try await devices[1].1.sync()
    for (_, replica) in devices { try await replica.sync() }
    for (_, replica) in devices {
      let body = try await rows(replica).last?[1]
      #expect(body == "last")
    }
    let offsets = [-10 * Self.year, 10 * Self.year]
    for (index, expected) in offsets.enumerated() {
      let told = try await devices[index].1.status().clockOffset
      #expect(abs(told - expected) < 60_000)
    }
  }
}

/// The machine's clock, made wrong.
private final class WrongClock: Sendable {
  private let looks = Mutex<Int64>(0)
  private let offset: Int64
  private let step: Int64

  init(offset: Int64, step: Int64) {
    self.offset = offset
    self.step = step
  }

  func milliseconds() -> Int64 {
    let looks = looks.withLock { looks in
      looks += 1
      return looks
    }
    return SystemClock.milliseconds() + offset + looks * step
  }
}
