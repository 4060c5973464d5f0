import FerryProtocol

/// The result of one space's sync.
public struct SpaceSync: Sendable {
  /// The space; `nil` for a replica that has no server yet.
  public let space: String?
  /// The report, or the reason why the sync failed.
  public let result: Result<SyncReport, ReplicaError>
}

extension Replica {
  /// Syncs all spaces of the file side by side, and returns the result of each: the first space, then
  /// those that the file has joined. A space that fails does not stop the others.
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
    try await exchange { [self] in
      try await each { try await $0.engine.sync(progress: $0.noting(progress)) }
    }
  }

  /// Exchanges all spaces. Throws the first failure when all have ended.
  func exchangeAll(
    _ body: @escaping @Sendable (Replica) async throws -> SyncReport
  ) async throws -> SyncReport {
    try await exchange { [self] in
      guard number == 1, !thread.joinedSpaces.isEmpty else { return try await exchangeOne(body) }
      var total = SyncReport()
      for (index, result) in try await each(body).enumerated() {
        let report = try result.result.get()
        if index == 0 { total.cursor = report.cursor }
        total.add(report)
      }
      return total
    }
  }

  private func exchangeOne(
    _ body: @Sendable (Replica) async throws -> SyncReport
  ) async throws -> SyncReport {
    let report = try await body(self)
    try await tellConflicts()
    return report
  }

  private func each(
    _ body: @escaping @Sendable (Replica) async throws -> SyncReport
  ) async throws -> [SpaceSync] {
    let replicas = [self] + (try await joinedReplicas())
    return try await withThrowingTaskGroup(of: (Int, SpaceSync).self) { group in
      for (index, replica) in replicas.enumerated() {
        group.addTask {
          let result: Result<SyncReport, ReplicaError>
          do {
            result = .success(try await replica.exchangeOne(body))
          } catch {
            result = .failure(ReplicaError(error))
          }
          if case .failure(let error) = result, error.isStop { throw error }
          return (index, SpaceSync(space: await replica.spaceName(), result: result))
        }
      }
      var results: [(Int, SpaceSync)] = []
      for try await result in group { results.append(result) }
      return results.sorted { $0.0 < $1.0 }.map(\.1)
    }
  }

  // MARK: Watching

  private enum WatchStep: Sendable {
    case spacesMayHaveChanged
    case ended(Replica, ReplicaError)
  }

  /// Watches all spaces, also those that the file joins meanwhile, until the task is cancelled or no
  /// space can go on.
  func followAll(
    progress: @escaping @Sendable (SyncProgress) -> Void,
    onEvent: @escaping @Sendable (WatchEvent) -> Void
  ) async throws {
    let changes = watches.add()
    defer { watches.remove(changes) }
    try await withThrowingTaskGroup(of: WatchStep.self) { group in
      func watch(_ replica: Replica) {
        group.addTask {
          do {
            try await replica.follow(progress: progress, onEvent: onEvent) { changes.wake() }
            return .ended(replica, .cancelled)
          } catch {
            return .ended(replica, ReplicaError(error))
          }
        }
      }
      func awaitChange() {
        group.addTask {
          for await _ in changes.stream { return .spacesMayHaveChanged }
          throw CancellationError()
        }
      }
      defer { group.cancelAll() }
      var (known, running, first) = (Set([number]), 1, ReplicaError?.none)
      // A space that was refused is tried again with another server or token.
      var stopped: [Int: ServerAccess] = [:]
      watch(self)
      changes.wake()
      awaitChange()
      while let step = try await group.next() {
        switch step {
        case .spacesMayHaveChanged:
          for replica in try await joinedReplicas() {
            if let access = stopped[replica.number], await replica.isChanged(since: access) {
              (stopped[replica.number], known) = (nil, known.subtracting([replica.number]))
            }
            guard known.insert(replica.number).inserted else { continue }
            running += 1
            watch(replica)
          }
          awaitChange()
        case .ended(let replica, let error):
          try Task.checkCancellation()
          if error.isStop { throw error }
          running -= 1
          first = first ?? error
          if running == 0 { throw first ?? error }
          // The file may have left it.
          guard let space = await replica.spaceName() else { continue }
          stopped[replica.number] = try? await replica.access()
          onEvent(.stopped(space: space, error))
        }
      }
    }
  }
}

extension Replica {
  /// The space's name; `nil` if there is none, or if the file has left it.
  fileprivate func spaceName() async -> String? { try? await server()?.space.value }

  /// Whether the space has another server or another stored token now.
  fileprivate func isChanged(since access: ServerAccess) async -> Bool {
    guard let now = try? await self.access() else { return false }
    return now.address != access.address || now.stored != access.stored
  }
}

extension SyncReport {
  /// Adds the counts of another space's sync.
  fileprivate mutating func add(_ other: SyncReport) {
    pushed += other.pushed
    duplicates += other.duplicates
    buffered += other.buffered
    left += other.left
    recorded += other.recorded
    unreconciled += other.unreconciled
    pulled += other.pulled
    refused += other.refused
    quarantined += other.quarantined
    conflicts += other.conflicts
  }
}
