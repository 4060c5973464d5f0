import FerryProtocol

/// The result of one space's sync.
public struct SpaceSync: Sendable {
  /// The space; `nil` for a replica without a server.
  public let space: String?
  /// The report, or the reason why the sync failed.
  public let result: Result<SyncReport, ReplicaError>
}

/// Exchanges all spaces of a file side by side. A failed space does not stop the others.
struct SpaceExchange: Sendable {
  /// The replica of the file's first space, or the one of a joined space alone.
  let replica: Replica

  /// Exchanges all spaces. Returns the sum; throws the first failure when all have ended.
  func all(
    _ body: @escaping @Sendable (Replica) async throws -> SyncReport
  ) async throws -> SyncReport {
    guard replica.number == 1, !replica.thread.joinedSpaces.isEmpty else {
      return try await exchange(replica, body)
    }
    var total = SyncReport()
    for (index, result) in try await each(body).enumerated() {
      let report = try result.result.get()
      if index == 0 { total.cursor = report.cursor }
      total.add(report)
    }
    return total
  }

  private func exchange(
    _ replica: Replica, _ body: @Sendable (Replica) async throws -> SyncReport
  ) async throws -> SyncReport {
    let report = try await body(replica)
    try await replica.notifyConflicts()
    return report
  }

  /// Returns the name of a replica's space; `nil` if there is none, or if the file has left it.
  static func name(of replica: Replica) async -> String? {
    try? await replica.server()?.space.value
  }

  /// Exchanges the spaces side by side, and returns the result of each.
  func each(
    _ body: @escaping @Sendable (Replica) async throws -> SyncReport
  ) async throws -> [SpaceSync] {
    let replicas = [replica] + (try await replica.spaces.replicas())
    return try await withThrowingTaskGroup(of: (Int, SpaceSync).self) { group in
      for (index, replica) in replicas.enumerated() {
        group.addTask {
          let result: Result<SyncReport, ReplicaError>
          do {
            result = .success(try await exchange(replica, body))
          } catch {
            result = .failure(ReplicaError(error))
          }
          if case .failure(let error) = result, error.isStop { throw error }
          return (index, SpaceSync(space: await Self.name(of: replica), result: result))
        }
      }
      var results: [(Int, SpaceSync)] = []
      for try await result in group { results.append(result) }
      return results.sorted { $0.0 < $1.0 }.map(\.1)
    }
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
    questions += other.questions
  }
}
