import FerryProtocol
import FerrySyncServer

/// A store outside of virtual time.
final class StandStillStore: SyncStore {
  private let scheduler: Scheduler
  private let store: PostgresStore
  /// Has this process's commits only: the database's own notices come in real time.
  let heads = HeadMoves()

  init(_ scheduler: Scheduler, _ store: PostgresStore) {
    (self.scheduler, self.store) = (scheduler, store)
  }

  func still<T: Sendable>(
    _ body: @Sendable (PostgresStore) async throws(StoreError) -> T
  ) async throws(StoreError) -> T {
    let store = store
    return try await scheduler.standStill { () async throws(StoreError) in try await body(store) }
  }

  var limits: Limits { store.limits }
  var makeEpoch: @Sendable () -> Epoch { store.makeEpoch }

  func lend<T: Sendable>(
    _ use: PlainUse, for function: String,
    _ body: @escaping @Sendable (any PlainConnection) throws -> T
  ) async throws(StoreError) -> T {
    try await still { store async throws(StoreError) in
      try await store.lend(use, for: function, body)
    }
  }

  func change<T: Sendable>(
    _ space: Int64, now: Int64, for function: String,
    _ body: @escaping @Sendable (SpaceChange) throws -> T
  ) async throws(StoreError) -> T {
    try await still { store async throws(StoreError) in
      try await store.change(space, now: now, for: function, body)
    }
  }

  func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, room: IngestRoom
  ) async throws(StoreError) -> IngestBatch {
    let batch = try await still { store async throws(StoreError) in
      try await store.ingest(packets, into: space, now: now, room: room)
    }
    heads.publish(HeadMove(space: space, head: batch.head))
    return batch
  }

  func applySchema(
    _ document: SpaceSchema, to space: Int64, now: Int64, consent: SchemaConsent, onlyChecks: Bool,
    by mark: AuditMark?
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    let answer = try await still { store async throws(StoreError) in
      try await store.applySchema(
        document, to: space, now: now, consent: consent, onlyChecks: onlyChecks, by: mark)
    }
    if let head = try await spaces().first(where: { $0.id == space })?.head {
      heads.publish(HeadMove(space: space, head: head))
    }
    return answer
  }

  func changes(
    in space: Int64, _ request: PullRequest, now: Int64
  ) async throws(StoreError) -> Result<[UInt8], Problem> {
    try await still { store async throws(StoreError) in
      try await store.changes(in: space, request, now: now)
    }
  }

  func reclaim() async throws(StoreError) -> ReclaimStep {
    try await still { store async throws(StoreError) in try await store.reclaim() }
  }

  func check() async throws(StoreError) {
    try await still { store async throws(StoreError) in try await store.check() }
  }

  func close() async { heads.finish() }
}
