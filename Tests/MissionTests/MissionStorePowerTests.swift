import FerryPlatform
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryMissions

/// The rows of the mission store after a loss of power, on a disk that loses unsynced writes.
@Suite("The mission store after a power loss", .hangLimit)
struct MissionStorePowerTests {
  private static let path = "/device/replica.db.missions/content.db"
  private let published = Publication("m", [("a.txt", content(1, 10))])

  /// Creates a separate disk for each seed.
  private func disk(_ seed: UInt64) -> SimulatedDisk {
    let state = Mutex(seed &* 0x9E37_79B9_7F4A_7C15 &+ 1)
    return SimulatedDisk(name: "power", clock: { 1_800_000_000_000 }) {
      state.withLock { state in
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
      }
    }
  }

  private func open(_ disk: SimulatedDisk) async throws -> SQLiteMissionStore {
    try await SQLiteMissionStore.open(
      Self.path, canonical: { $0 }, on: InlineExecutor(),
      fileSystem: disk.fileSystem)
  }

  /// Returns a store with one complete version, and the store's disk.
  private func filled(_ seed: UInt64) async throws -> (SimulatedDisk, MissionVersion) {
    let disk = disk(seed)
    let store = try await open(disk)
    let version = try await store.add(published.record, at: 1).version
    try await store.setManifest(published.document, published.manifest, of: version)
    try await store.complete(version, at: 2)
    return (disk, version)
  }

  @Test("a version that is complete stays complete")
  func complete() async throws {
    for seed in 1...40 as ClosedRange<UInt64> {
      let disk = disk(seed)
      do {
        let store = try await open(disk)
        let version = try await store.add(published.record, at: 1).version
        try await store.setManifest(published.document, published.manifest, of: version)
        try await store.complete(version, at: 2)
        disk.losePower(under: "/device/")
      }
      let left = try await open(disk).missions()
      #expect(left.map(\.isComplete) == [true], "seed \(seed)")
    }
  }

  @Test("rows that were removed with their files never return")
  func removed() async throws {
    for seed in 1...40 as ClosedRange<UInt64> {
      let (disk, version) = try await filled(seed)
      do {
        let store = try await open(disk)
        _ = try await store.remove(version, ending: nil)
        disk.losePower(under: "/device/")
      }
      let left = try await open(disk).missions()
      #expect(left.isEmpty, "seed \(seed)")
    }
  }
}

/// Runs all work on the caller's thread: a simulated disk allows one use at a time, ends of
/// connections included.
private final class InlineExecutor: WorkExecutor {
  func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try body()
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    job.runSynchronously(on: asUnownedSerialExecutor())
  }

  func asUnownedSerialExecutor() -> UnownedSerialExecutor {
    UnownedSerialExecutor(ordinary: self)
  }
}
