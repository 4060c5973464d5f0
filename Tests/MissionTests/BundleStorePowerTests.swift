import FerryPlatform
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerryMissions

/// The state of bundles after a loss of power, on a disk that loses unsynced writes.
@Suite("The bundles' state after a power loss", .hangLimit)
struct BundleStorePowerTests {
  private static let path = "/device/replica.db.missions/content.db"
  private let board = made(BundleName("board"))

  private func key(_ version: Int) -> BundleKey {
    BundleKey(
      version: made(BundleVersion(version)),
      manifest: made(ContentHash([UInt8](repeating: UInt8(version), count: 32))))
  }

  @Test("a switch that has returned survives a loss of power, and is whole")
  func power() async throws {
    for seed in 1...40 as ClosedRange<UInt64> {
      let state = Mutex(SeededGenerator(seed: seed))
      let disk = SimulatedDisk(name: "power", clock: { 1_800_000_000_000 }) {
        state.withLock { $0.next() }
      }
      var expected = BundleState()
      for version in 1...4 {
        let store = try await BundleStore.open(
          Self.path, on: PowerExecutor(), fileSystem: disk.fileSystem)
        let key = key(version)
        expected = try await store.change(board) { state in
          state.activate(key)
          if version % 2 == 1 { state.confirm(key, at: Int64(version)) }
        }
        if version == 4 {
          expected = try await store.change(board) { state in
            state.leave(key, .failure(BundleReason(bounding: "it is blank")), at: 9) { _ in true }
          }
        }
        disk.losePower(under: "/device/")
        let after = try await BundleStore.open(
          Self.path, on: PowerExecutor(), fileSystem: disk.fileSystem)
        let found = try await after.state(of: board)
        #expect(found == expected, "seed \(seed), version \(version)")
        #expect(try await after.names() == [board])
      }
      #expect(expected.active == key(3) && expected.formers == [key(1)])
    }
  }
}

/// Runs all work on the caller's thread: a simulated disk allows one use at a time, ends of
/// connections included.
private final class PowerExecutor: WorkExecutor {
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
