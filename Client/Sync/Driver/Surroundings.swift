import Executors
import FerryProtocol
import Foundation
import Networking

/// What a replica takes from the machine that it runs on; a simulation gives it its own.
package struct Surroundings: Sendable {
  /// The wall clock, milliseconds since 1970. May jump.
  package var wallClock: @Sendable () -> Int64
  /// Where identifiers and the jitter of retries come from.
  package var random: @Sendable () -> UInt64
  /// Waits; throws `CancellationError` when the task is cancelled.
  package var sleep: @Sendable (Duration) async throws -> Void
  /// A place for blocking work, by the name that debuggers show.
  package var makeExecutor: @Sendable (String) -> any WorkExecutor
  /// Makes sure that one process at a time syncs the file at this path, waiting for so long.
  package var lock: @Sendable (String, Duration) async throws -> SyncLock
  /// What is asked for a way to the server before each request.
  package var connectivity: any Connectivity = AssumedConnectivity()
  /// The SQLite VFS that holds the file; `nil` for the operating system's.
  package var fileSystem: String?
  /// Where the token is kept.
  package var credentials: any CredentialStore = MemoryCredentialStore()
  package var limits = Limits.standard
  /// How a sync behaves.
  package var sync = SyncEngine.Options()
  /// How watching behaves.
  package var watch = Watcher.Options()

  package init(
    wallClock: @escaping @Sendable () -> Int64, random: @escaping @Sendable () -> UInt64,
    sleep: @escaping @Sendable (Duration) async throws -> Void,
    makeExecutor: @escaping @Sendable (String) -> any WorkExecutor,
    lock: @escaping @Sendable (String, Duration) async throws -> SyncLock
  ) {
    self.wallClock = wallClock
    self.random = random
    self.sleep = sleep
    self.makeExecutor = makeExecutor
    self.lock = lock
  }

  /// This machine.
  package static var system: Surroundings {
    var surroundings = Surroundings(
      wallClock: SystemClock.milliseconds, random: EntropyPool().next,
      sleep: { try await Task.sleep(for: $0) }, makeExecutor: { ThreadExecutor(name: $0) },
      lock: { try await SyncLock.acquire(path: $0, patience: $1) })
    surroundings.connectivity = SystemConnectivity()
    surroundings.credentials = FileCredentialStore()
    return surroundings
  }

  /// The same for the network client.
  var network: NetworkSurroundings {
    NetworkSurroundings(now: { wallClock() / 1000 }, random: random, sleep: sleep)
  }
}

/// The machine's clock.
package enum SystemClock {
  /// Milliseconds since 1970.
  @Sendable package static func milliseconds() -> Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
  }
}
