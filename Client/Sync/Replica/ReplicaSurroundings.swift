import FerryNetworking
import FerryPlatform
import FerryProtocol
import Foundation

/// The machine's services for a replica; a simulation replaces them.
package struct ReplicaSurroundings: Sendable {
  /// The wall clock, milliseconds since 1970. May jump.
  package var wallClock: @Sendable () -> Int64
  /// The source of identifiers and of the jitter of retries.
  package var random: @Sendable () -> UInt64
  /// Waits; throws `CancellationError` when the task is cancelled.
  package var sleep: @Sendable (Duration) async throws -> Void
  /// Makes an executor for blocking work; debuggers show the name.
  package var makeExecutor: @Sendable (String) -> any WorkExecutor
  /// Ensures that one process at a time syncs the file at this path; waits at most this long.
  package var lock: @Sendable (String, Duration) async throws -> SyncLock
  /// The check for a connection to the server before each request.
  package var connectivity: any Connectivity = AssumedConnectivity()
  /// The SQLite VFS of the file; `nil` for the operating system's.
  package var fileSystem: String?
  /// The store of the token.
  package var credentials: any CredentialStore = MemoryCredentialStore()
  /// The executor of the replica's own tasks; `nil` for the pool.
  package var executor: (any TaskExecutor)?
  /// Gets the entries of the replica's log.
  package var log: (@Sendable (LogEntry) -> Void)?
  /// The source of the identifiers of traces; `nil` if requests name no trace.
  package var traceRandom: (@Sendable () -> UInt64)?
  package var limits = Limits.standard
  /// How long a statement waits while another program locks the file.
  package var busyTimeout: Duration = .seconds(10)
  /// The last used files of many replicas; `nil` if the file keeps the memory. With it, reads use the
  /// connection of the writes.
  package var warm: WarmFiles?
  /// How first lists are filled in beside their tables.
  package var firstLists = FirstListOptions()
  /// Another database that counts the records of mapped tables; `nil` if the replica does.
  package var numbering: (any RecordNumbering)?
  /// True if the space's rules give way to the replica's operations (SPEC.md §40). The server asks for
  /// the role `admin`; with a weaker one, the rules decide.
  package var isAuthority = false
  /// True if a loss of power takes no operation that the server has: the author of the writes would
  /// repeat them. Each freeze of packets then waits for the disk.
  package var sendsDurably = false
  /// The options of a sync.
  package var sync = SyncEngine.Options()
  /// The options of a watch.
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

  /// Runs `body` again for as long as another program locks the file: each attempt has waited for
  /// ``busyTimeout``.
  func whileBusy<T: Sendable>(
    _ body: @Sendable () async throws -> T
  ) async throws -> T {
    while true {
      do {
        return try await body()
      } catch let error where ReplicaError(error).isBusy {
        try await sleep(watch.localPoll)
      }
    }
  }

  /// The real machine.
  package static var system: ReplicaSurroundings {
    let entropy = EntropyPool()
    var surroundings = ReplicaSurroundings(
      wallClock: SystemClock.milliseconds, random: entropy.next,
      sleep: { try await Task.sleep(for: $0) }, makeExecutor: { ThreadExecutor(name: $0) },
      lock: { try await SyncLock.acquire(path: $0, patience: $1) })
    surroundings.connectivity = SystemConnectivity()
    surroundings.credentials = FileCredentialStore()
    surroundings.traceRandom = entropy.next
    return surroundings
  }

  /// The surroundings of the network client.
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
