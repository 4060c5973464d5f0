import FerryProtocol

/// Watching a replica.
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
    try await spaces.watch(progress: progress) { onEvent($1) }
  }

  /// Reports to the server how far this device has applied the space's changes. Each later sync reports
  /// it, too; so call this only if an administrator should see it before.
  public func reportApplied() async throws {
    try await ReplicaError.converting { try await engine.reportApplied() }
  }

  /// Watches this space alone until the task is cancelled.
  ///
  /// - Parameter prepare: runs before each sync; `false` postpones the sync.
  package func watch(
    preparing prepare: @escaping @Sendable () async -> Bool,
    onEvent: @escaping @Sendable (WatchEvent) -> Void
  ) async throws {
    try await ReplicaError.converting {
      try await thread.gate.whileOpen { [self] in
        try await SpaceWatch(first: self).watch(
          self, progress: { _ in }, onEvent: onEvent, fileChanged: {}, prepare: prepare)
      }
    }
  }

}
