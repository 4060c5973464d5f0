import FerryLaboratory
import FerryPostgres
import Foundation
import Synchronization

/// Faults of PostgreSQL itself. One at a time stops and starts it.
final class DatabaseOperator: Sendable {
  private let cluster: PostgresCluster
  /// The databases whose processes are meant.
  private let databases: [String]
  private let restarting = Mutex(())

  init(_ cluster: PostgresCluster, databases: [String]) {
    self.cluster = cluster
    self.databases = databases
  }

  /// Stops the server, and starts it after `pause`. The returned closure reports success.
  func restart(
    _ shutdown: PostgresCluster.Shutdown, pause: Duration
  ) async throws -> @Sendable () async throws -> Bool {
    try await blocking { [self] in
      try restarting.withLock { _ in
        // A server in recovery does not shut down in order.
        if shutdown == .fast { try waitUntilAnswering() }
        do {
          try cluster.stop(shutdown, within: .seconds(8))
        } catch  where shutdown == .fast {
          try cluster.stop(.immediate)
        }
        Thread.sleep(forTimeInterval: pause / .seconds(1))
        try cluster.start()
      }
    }
    return { true }
  }

  /// Returns when the server takes connections. Blocks.
  func waitUntilAnswering() throws {
    let deadline = ContinuousClock.now + .seconds(30)
    while true {
      do {
        if let database = databases.first { _ = try PostgresConnection(url: database) }
        return
      } catch  where ContinuousClock.now < deadline {
        Thread.sleep(forTimeInterval: 0.05)
      }
    }
  }

  /// Kills one of the processes for the database's connections.
  func killBackend(_ choice: Int) async throws -> @Sendable () async throws -> Bool {
    try await blocking { [self] in
      let processes = try databases.flatMap { try cluster.backendProcessIDs(serving: $0) }
      guard !processes.isEmpty else { return { false } }
      kill(processes[choice % processes.count], SIGKILL)
      return { true }
    }
  }

  /// Stops one in `share` of the processes for the database's connections with SIGSTOP.
  func pause(oneIn share: Int) async throws -> @Sendable () async throws -> Bool {
    try await blocking { [self] in
      let processes = try databases.flatMap { try cluster.backendProcessIDs(serving: $0) }
        .enumerated().filter { $0.offset % max(1, share) == 0 }.map(\.element)
      for process in processes { kill(process, SIGSTOP) }
      return {
        for process in processes { kill(process, SIGCONT) }
        return !processes.isEmpty
      }
    }
  }
}
