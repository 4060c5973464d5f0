import FerryConformance
import FerryCryptography
import FerryMissions
import FerryPlatform
import FerryProtocol
import FerrySimulation
import FerryTestSupport
import Foundation
import Synchronization
import Testing

/// The files of missions on a disk that loses unsynced writes.
@Suite(.hangLimit)
struct MissionPowerTests {
  private static let root = "/device/replica.db.missions"
  private static let bytes = [UInt8](repeating: 7, count: 10_000)

  private static var content: StoredContent {
    StoredContent(hash: made(ContentHash(SHA256.digest(of: bytes))), size: Int64(bytes.count))
  }

  private static func made<T>(_ value: T?) -> T {
    guard let value else { preconditionFailure("the test's own value is none") }
    return value
  }

  private static var plan: BundlePlan {
    BundlePlan(
      mission: made(MissionID("guide")), version: 1,
      files: ["a.bin", "media/b.bin"].map { BundlePlan.File(path: $0, content: content) })
  }

  private static func disk(_ seed: UInt64) -> SimulatedDisk {
    let random = Mutex(SeededRandom(seed, "power"))
    return SimulatedDisk(name: "power", clock: { 1_800_000_000_000 }) {
      random.withLock { $0.next() }
    }
  }

  private static func calls(_ disk: SimulatedDisk) -> SimulatedFileCalls {
    SimulatedFileCalls(disk.folders(of: "/device")) { true }
  }

  private static func files(_ calls: SimulatedFileCalls) throws -> DiskFileStore {
    try DiskFileStore(root: root, key: nil, system: calls) { ThreadExecutor(name: $0) }
  }

  /// Builds content as a download does, with the manager's steps to the end.
  private static func build(_ calls: SimulatedFileCalls) async throws {
    let store = try files(calls)
    let file = calls.open(store.partialPath(of: content.hash), O_RDWR | O_CREAT, 0o600)
    let count = bytes.withUnsafeBytes { calls.pwrite(file, $0.baseAddress, $0.count, 0) }
    guard count == bytes.count else { throw MissionError(.files, "the disk fails") }
    calls.close(file)
    try await store.adopt(content)
    try await store.sync([content.hash])
    try await store.build(plan)
  }

  @Test("a version that is complete survives a power loss, whole")
  func built() async throws {
    for seed in 1...60 as ClosedRange<UInt64> {
      let disk = Self.disk(seed)
      let calls = Self.calls(disk)
      try await Self.build(calls)
      disk.losePower(under: "/device/")
      let store = try Self.files(calls)
      #expect(try await store.fault(in: Self.plan) == nil, "seed \(seed)")
      #expect(try await store.isIntact(Self.content), "seed \(seed)")
      #expect(disk.folders(of: "/device").bytes(of: "\(Self.folder)/a.bin") == Self.bytes)
    }
  }

  private static let folder = "replica.db.missions/bundles/guide/1"

  @Test("a version that is being built is whole or absent after a power loss at any step")
  func building() async throws {
    var outcomes: Set<Bool> = []
    for step in 0..<60 {
      let disk = Self.disk(UInt64(step))
      let calls = Self.calls(disk)
      let left = Mutex(step)
      disk.faults = { asked in
        let isDue = left.withLock { left in
          left -= asked.operation == .read ? 0 : 1
          return left < 0
        }
        return isDue ? .ioFailure : nil
      }
      // Errors here come from the loss of power.
      try? await Self.build(calls)
      disk.faults = { _ in nil }
      disk.losePower(under: "/device/")
      let store = try Self.files(calls)
      let isThere = disk.folders(of: "/device").paths().contains { $0.hasPrefix(Self.folder) }
      if isThere { #expect(try await store.fault(in: Self.plan) == nil, "step \(step)") }
      outcomes.insert(isThere)
    }
    #expect(outcomes == [true, false])
  }
}
