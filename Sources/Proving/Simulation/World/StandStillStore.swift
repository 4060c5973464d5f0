import FerryProtocol
import FerrySyncServer

/// A store outside of virtual time.
final class StandStillStore: SyncStore {
  private let scheduler: Scheduler
  private let store: PostgresStore
  private let moves = HeadMoves()

  init(_ scheduler: Scheduler, _ store: PostgresStore) {
    (self.scheduler, self.store) = (scheduler, store)
  }

  func still<T: Sendable>(
    _ body: @Sendable (PostgresStore) async throws(StoreError) -> T
  ) async throws(StoreError) -> T {
    let store = store
    return try await scheduler.standStill { () async throws(StoreError) in try await body(store) }
  }

  func createSpace(
    _ name: SpaceName, by mark: AuditMark?
  ) async throws(StoreError) -> SpaceSummary {
    try await still { store async throws(StoreError) in
      try await store.createSpace(name, by: mark)
    }
  }

  func createSpace(
    _ name: SpaceName, by mark: AuditMark, quota: Int64
  ) async throws(StoreError) -> SpaceSummary? {
    try await still { store async throws(StoreError) in
      try await store.createSpace(name, by: mark, quota: quota)
    }
  }

  func space(named name: SpaceName) async throws(StoreError) -> SpaceSummary? {
    try await still { store async throws(StoreError) in try await store.space(named: name) }
  }

  func spaces() async throws(StoreError) -> [SpaceSummary] {
    try await still { store async throws(StoreError) in try await store.spaces() }
  }

  func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, room: IngestRoom
  ) async throws(StoreError) -> IngestBatch {
    let batch = try await still { store async throws(StoreError) in
      try await store.ingest(packets, into: space, now: now, room: room)
    }
    moves.publish(HeadMove(space: space, head: batch.head))
    return batch
  }

  func schema(of space: Int64) async throws(StoreError) -> SpaceSchema {
    try await still { store async throws(StoreError) in try await store.schema(of: space) }
  }

  func applySchema(
    _ document: SpaceSchema, to space: Int64, now: Int64, consent: SchemaConsent,
    by mark: AuditMark?
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    let answer = try await still { store async throws(StoreError) in
      try await store.applySchema(
        document, to: space, now: now, consent: consent, by: mark)
    }
    if let head = try await spaces().first(where: { $0.id == space })?.head {
      moves.publish(HeadMove(space: space, head: head))
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

  func records(
    _ keys: [RecordKey], in space: Int64, now: Int64
  ) async throws(StoreError) -> Result<[UInt8], Problem> {
    try await still { store async throws(StoreError) in
      try await store.records(keys, in: space, now: now)
    }
  }

  func digests(
    in space: Int64, _ query: DigestQuery
  ) async throws(StoreError) -> Result<DigestAnswer, Problem> {
    try await still { store async throws(StoreError) in
      try await store.digests(in: space, query)
    }
  }

  func foldDigests(in space: Int64) async throws(StoreError) -> SequenceNumber {
    try await still { store async throws(StoreError) in
      try await store.foldDigests(in: space)
    }
  }

  func buffered(
    in space: Int64, of device: DeviceID
  ) async throws(StoreError) -> (packets: Int, bytes: Int) {
    try await still { store async throws(StoreError) in
      try await store.buffered(in: space, of: device)
    }
  }

  func usage(
    in space: Int64
  ) async throws(StoreError) -> [(principal: String, usage: Usage)] {
    try await still { store async throws(StoreError) in try await store.usage(in: space) }
  }

  func setDeviceName(
    _ name: DeviceName?, of device: DeviceID, in space: Int64, by principal: Principal
  ) async throws(StoreError) -> Bool {
    try await still { store async throws(StoreError) in
      try await store.setDeviceName(name, of: device, in: space, by: principal)
    }
  }

  func deviceNames(
    of devices: [DeviceID], in space: Int64
  ) async throws(StoreError) -> [NamedDevice] {
    try await still { store async throws(StoreError) in
      try await store.deviceNames(of: devices, in: space)
    }
  }

  func unpublishedUse(in space: Int64) async throws(StoreError) -> UnpublishedUse {
    try await still { store async throws(StoreError) in
      try await store.unpublishedUse(in: space)
    }
  }

  func setRetention(
    _ retention: Retention, of space: Int64, by mark: AuditMark?
  ) async throws(StoreError) {
    try await still { store async throws(StoreError) in
      try await store.setRetention(retention, of: space, by: mark)
    }
  }

  func raiseRetentionHorizon(
    of space: Int64, _ request: HorizonRequest
  ) async throws(StoreError) -> RaisedHorizon {
    try await still { store async throws(StoreError) in
      try await store.raiseRetentionHorizon(of: space, request)
    }
  }

  func prune(_ slice: PruneSlice, of space: Int64) async throws(StoreError) -> PruneStep {
    try await still { store async throws(StoreError) in try await store.prune(slice, of: space) }
  }

  func reclaim() async throws(StoreError) -> ReclaimStep {
    try await still { store async throws(StoreError) in try await store.reclaim() }
  }

  /// Notifies of this process's commits: the database's own notices come in real time.
  func headMoves() -> AsyncStream<HeadMove> { moves.stream() }

  func check() async throws(StoreError) {
    try await still { store async throws(StoreError) in try await store.check() }
  }

  func close() async { moves.finish() }
}
