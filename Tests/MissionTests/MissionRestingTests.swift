import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryMissions

@Suite("Paused missions and their observers", .hangLimit)
struct MissionRestingTests {
  private let shelf = Shelf()
  private let small = content(1, 10)
  private let large = content(2, 300_000)

  private func publish(_ id: String) {
    shelf.publish(Publication(id, [("a.txt", small), ("media/b.bin", large)]))
  }

  /// Returns a device that has most of a mission.
  private func halfway(_ more: Shelf.Obstacle...) async throws -> Device {
    publish("m")
    shelf.obstruct(large, .hangs(after: 200_000))
    for obstacle in more { shelf.obstruct(large, obstacle) }
    let device = try await Device(shelf)
    try await device.manager.download([mission("m")])
    try await device.wait(for: "m") { $0.bytesDone >= 200_000 }
    return device
  }

  @Test("a mission pauses if its signer is not trusted any more, and continues with new trust")
  func distrusted() async throws {
    let device = try await halfway()
    try await device.manager.pause(mission("m"))
    _ = try await device.manager.waitUntilIdle([mission("m")])
    try await device.manager.trust(Ed25519.SecretKey().publicKey.bytes)
    try await device.manager.resume(mission("m"))
    let resting = try #require(try await device.manager.waitUntilIdle([mission("m")]).first)
    #expect(resting.state == .paused && resting.reason?.kind == .untrustedSigner)
    #expect(device.everything().contains { $0.hasPrefix("partial/") })
    let before = shelf.bytesFetched
    // It continues by itself.
    try await device.manager.trust(Publication.key.publicKey.bytes)
    #expect(try await device.manager.waitUntilIdle([mission("m")]).map(\.state) == [.done])
    #expect(shelf.bytesFetched - before <= 300_000 - 3 * 65_536 + 10)
  }

  @Test("a mission that is retracted during its download reports it")
  func retracted() async throws {
    let device = try await halfway(.fails(DownloadError(.server(404), "the server answered 404")))
    try await device.manager.pause(mission("m"))
    _ = try await device.manager.waitUntilIdle([mission("m")])
    shelf.retract("m")
    try await device.manager.resume(mission("m"))
    let ended = try #require(try await device.manager.waitUntilIdle([mission("m")]).first)
    #expect(ended.state == .failed && ended.reason?.kind == .retracted)
    #expect(ended.reason?.message.contains("it was retracted") == true)
    #expect(ended.reason?.item == "media/b.bin")
  }

  @Test("a mission without a process is reported as interrupted, and continues")
  func interrupted() async throws {
    let first = try await halfway()
    let second = try await first.another()
    #expect(try await !second.manager.mission(mission("m")).isInterrupted)
    await first.manager.close()
    let left = try await second.manager.mission(mission("m"))
    #expect(left.state == .downloading && left.isInterrupted && left.reason == nil)
    // Reading the state has changed nothing.
    #expect(try await second.manager.mission(mission("m")).isInterrupted)
    try await second.manager.resume(mission("m"))
    let done = try #require(try await second.manager.waitUntilIdle([mission("m")]).first)
    #expect(done.state == .done && !done.isInterrupted)
  }

  @Test("an observer of another process's download does not change its row")
  func lookingOn() async throws {
    let first = try await halfway()
    let second = try await first.another()
    try await second.manager.download([mission("m")])
    try await second.wait(for: "m") { $0.reason?.kind == .busy }
    #expect(try await first.store.missions().map(\.reason) == [nil])
    #expect(try await first.manager.mission(mission("m")).reason == nil)
    await second.manager.close()
    await first.manager.close()
  }

  @Test("a check reports its progress within a large file", arguments: [false, true])
  func farCheck(isSealed: Bool) async throws {
    let film = content(5, 2_500_000)
    shelf.publish(Publication("m", [("film.mp4", film)]))
    let device = try await Device(shelf, key: isSealed ? [UInt8](repeating: 1, count: 32) : nil)
    try await device.download("m")
    let seen = Mutex<[Int64]>([])
    let report = try await device.manager.verify(mission("m")) { report in
      seen.withLock { $0.append(report.bytes) }
    }
    #expect(report.isIntact && report.bytes == 2_500_000)
    let bytes = seen.withLock { $0 }
    #expect(bytes.contains(1 << 20) && bytes == bytes.sorted() && bytes.last == 2_500_000)
  }

  @Test("the result of a check is reported even if the repair fails")
  func watchedCheck() async throws {
    publish("m")
    let device = try await Device(shelf)
    try await device.download("m")
    try await device.damage("a.txt", of: "m", with: [1, 2, 3])
    shelf.obstruct(small, .fails(DownloadError(.offline, "cannot reach the server")))
    let seen = Mutex<[MissionVerification]>([])
    await #expect(throws: MissionError.self) {
      try await device.manager.verify(mission("m"), repairing: true) { report in
        seen.withLock { $0.append(report) }
      }
    }
    let reports = seen.withLock { $0 }
    let bytes = reports.map(\.bytes)
    #expect(bytes == bytes.sorted() && bytes.last == 300_010)
    #expect(reports.last?.damaged == ["a.txt"])
  }
}
