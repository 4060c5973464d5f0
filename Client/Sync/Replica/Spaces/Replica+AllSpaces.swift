import FerryPersistence
import FerryProtocol

/// The result of one space's sync.
public struct SpaceSync: Sendable {
  /// The space; `nil` for a replica without a server.
  public let space: String?
  /// The report, or the reason why the sync failed.
  public let result: Result<SyncReport, ReplicaError>
}

extension Replica {
  /// Syncs all spaces of the file side by side, and returns the result of each: the first space,
  /// then the joined ones. A failed space does not stop the others.
  ///
  /// ```swift
  /// for space in try await replica.syncSpaces() {
  ///   if case .failure(let error) = space.result { print("\(space.space ?? ""): \(error)") }
  /// }
  /// ```
  ///
  /// - Throws: ``ReplicaError/cancelled``, ``ReplicaError/suspended``, ``ReplicaError/closed``.
  public func syncSpaces(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> [SpaceSync] {
    let results = try await exchange { [self] in
      try await SpaceExchange(replica: self).each {
        try await $0.engine.sync(progress: $0.noting(progress))
      }
    }
    await notifyCompanions()
    return results
  }

  /// Exchanges all spaces. Throws the first failure when all have ended.
  func exchangeAll(
    _ body: @escaping @Sendable (Replica) async throws -> SyncReport
  ) async throws -> SyncReport {
    try await exchange { [self] in try await SpaceExchange(replica: self).all(body) }
  }

  /// Pushes to all spaces of the file, and returns the result of each, as ``syncSpaces(progress:)`` does.
  public func pushSpaces(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> [SpaceSync] {
    try await exchange { [self] in
      try await SpaceExchange(replica: self).each {
        try await $0.engine.push(progress: $0.noting(progress))
      }
    }
  }

  /// Pulls from all spaces of the file, and returns the result of each, as ``syncSpaces(progress:)`` does.
  public func pullSpaces(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in }
  ) async throws -> [SpaceSync] {
    let results = try await exchange { [self] in
      try await SpaceExchange(replica: self).each {
        try await $0.engine.pull(progress: $0.noting(progress))
      }
    }
    await notifyCompanions()
    return results
  }

}

/// Watching all spaces of a file.
extension Replica {
  /// An event of a watching replica.
  public enum WatchEvent: Sendable {
    /// Something was exchanged.
    case synced(SyncReport)
    /// The server cannot be reached; the watch retries with growing pauses.
    case offline(ReplicaError)
    /// The live connection is open.
    case connected
    /// A space has stopped, for example because the server rejects the token. The others continue.
    /// The watch tries it again now and then, and at once when it has another server or token.
    case stopped(space: String, ReplicaError)
  }

  /// Keeps all spaces of the replica in sync until the task is cancelled. Sends local writes at
  /// once, and receives others' changes over a live connection. If the connection fails, it polls.
  /// While the replica is suspended, it waits.
  ///
  /// - Throws: ``ReplicaError/cancelled``; ``ReplicaError/closed`` when the replica is closed;
  ///   ``ReplicaError/database(_:code:)`` if the file fails; permanent errors, such as a revoked
  ///   token, when no space can continue.
  public func watch(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in },
    onEvent: @escaping @Sendable (WatchEvent) -> Void = { _ in }
  ) async throws {
    try await watchSpaces(progress: progress) { onEvent($1) }
  }

  /// Reports to the server how far this device has applied the space's changes. Each later sync reports
  /// it, too; so call this only if an administrator should see it before.
  public func reportApplied() async throws {
    try await typed { try await engine.reportApplied() }
  }

  /// Watches as ``watch(progress:onEvent:)`` does, and names the space of each event.
  ///
  /// - Parameter onEvent: gets the space's name, `nil` if it has none, and the event.
  public func watchSpaces(
    progress: @escaping @Sendable (SyncProgress) -> Void = { _ in },
    onEvent: @escaping @Sendable (_ space: String?, _ event: WatchEvent) -> Void
  ) async throws {
    try await typed {
      while true {
        do {
          return try await thread.gate.whileOpen { [self] in
            try await SpaceWatch(first: self).run(progress: progress, onEvent: onEvent)
          }
        } catch StoppedWork.suspended {
          try await thread.gate.opened()
        }
      }
    }
  }

  /// Watches this space alone until the task is cancelled.
  ///
  /// - Parameter prepare: runs before each sync; `false` postpones the sync.
  package func watch(
    preparing prepare: @escaping @Sendable () async -> Bool,
    onEvent: @escaping @Sendable (WatchEvent) -> Void
  ) async throws {
    try await typed {
      try await thread.gate.whileOpen { [self] in
        try await SpaceWatch(first: self).watch(
          self, progress: { _ in }, onEvent: onEvent, fileChanged: {}, prepare: prepare)
      }
    }
  }

}
