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

  private func still<T: Sendable>(
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
    moves.tell(HeadMove(space: space, head: batch.head))
    return batch
  }

  func schema(of space: Int64) async throws(StoreError) -> SpaceSchema {
    try await still { store async throws(StoreError) in try await store.schema(of: space) }
  }

  func applySchema(
    _ document: SpaceSchema, to space: Int64, now: Int64, keepsRecords: Bool, by mark: AuditMark?
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    let answer = try await still { store async throws(StoreError) in
      try await store.applySchema(
        document, to: space, now: now, keepsRecords: keepsRecords, by: mark)
    }
    if let head = try await spaces().first(where: { $0.id == space })?.head {
      moves.tell(HeadMove(space: space, head: head))
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

  func addToken(
    _ token: StoredToken, hash: [UInt8], by mark: AuditMark?, quota: Int64
  ) async throws(StoreError) -> Bool {
    try await still { store async throws(StoreError) in
      try await store.addToken(token, hash: hash, by: mark, quota: quota)
    }
  }

  func token(hash: [UInt8]) async throws(StoreError) -> KnownToken? {
    try await still { store async throws(StoreError) in try await store.token(hash: hash) }
  }

  func secretHashes() async throws(StoreError) -> [[UInt8]] {
    try await still { store async throws(StoreError) in try await store.secretHashes() }
  }

  func token(_ id: TokenID) async throws(StoreError) -> StoredToken? {
    try await still { store async throws(StoreError) in try await store.token(id) }
  }

  func tokens(
    after place: StoredToken.Place?, limit: Int
  ) async throws(StoreError) -> [StoredToken] {
    try await still { store async throws(StoreError) in
      try await store.tokens(after: place, limit: limit)
    }
  }

  func removeToken(_ id: TokenID, by mark: AuditMark?) async throws(StoreError) -> Bool {
    try await still { store async throws(StoreError) in
      try await store.removeToken(id, by: mark)
    }
  }

  func rotateToken(
    _ id: TokenID, hash: [UInt8], graceEnd: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool {
    try await still { store async throws(StoreError) in
      try await store.rotateToken(id, hash: hash, graceEnd: graceEnd, by: mark)
    }
  }

  func noteTokenUses(_ uses: [TokenID: Int64]) async throws(StoreError) {
    try await still { store async throws(StoreError) in try await store.noteTokenUses(uses) }
  }

  func hasEverHadTokens() async throws(StoreError) -> Bool {
    try await still { store async throws(StoreError) in try await store.hasEverHadTokens() }
  }

  func note(_ entry: AuditEntry) async throws(StoreError) {
    try await still { store async throws(StoreError) in try await store.note(entry) }
  }

  func audit(_ query: AuditQuery) async throws(StoreError) -> [AuditEntry] {
    try await still { store async throws(StoreError) in try await store.audit(query) }
  }

  func endAudit(before moment: Int64) async throws(StoreError) -> Int {
    try await still { store async throws(StoreError) in try await store.endAudit(before: moment) }
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

extension StandStillStore {
  func mission(
    _ id: MissionID, in space: Int64
  ) async throws(StoreError) -> StoredMission? {
    try await still { store async throws(StoreError) in try await store.mission(id, in: space) }
  }

  func missions(
    in space: Int64, after mission: MissionID?, limit: Int
  ) async throws(StoreError) -> MissionPage {
    try await still { store async throws(StoreError) in
      try await store.missions(in: space, after: mission, limit: limit)
    }
  }

  func publishMission(
    _ record: MissionRecord, blobs: [MissionBlob], in space: Int64, now: Int64,
    by mark: AuditMark?
  ) async throws(StoreError) -> Result<MissionRecord, Problem> {
    try await still { store async throws(StoreError) in
      try await store.publishMission(record, blobs: blobs, in: space, now: now, by: mark)
    }
  }

  func changeBundle(
    _ id: BundleID, _ change: BundleChange, in space: Int64, now: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Result<MissionRecord, Problem> {
    try await still { store async throws(StoreError) in
      try await store.changeBundle(id, change, in: space, now: now, by: mark)
    }
  }

  func keepBundleReports(
    _ reports: [BundleReport], of device: DeviceID, in space: Int64, now: Int64,
    by principal: Principal, quota: Int64
  ) async throws(StoreError) -> Result<Int, Problem> {
    try await still { store async throws(StoreError) in
      try await store.keepBundleReports(
        reports, of: device, in: space, now: now, by: principal, quota: quota)
    }
  }

  func bundleTallies(
    of bundles: [BundleID], in space: Int64, latest: Int
  ) async throws(StoreError) -> [BundleID: BundleTally] {
    try await still { store async throws(StoreError) in
      try await store.bundleTallies(of: bundles, in: space, latest: latest)
    }
  }

  func retractMission(
    _ id: MissionID, in space: Int64, now: Int64, by mark: AuditMark?
  ) async throws(StoreError) -> Bool {
    try await still { store async throws(StoreError) in
      try await store.retractMission(id, in: space, now: now, by: mark)
    }
  }

  func noteUpload(_ blob: MissionBlob, in space: Int64, now: Int64) async throws(StoreError) {
    try await still { store async throws(StoreError) in
      try await store.noteUpload(blob, in: space, now: now)
    }
  }

  func heldBlobs(
    among hashes: [ContentHash], in space: Int64
  ) async throws(StoreError) -> [MissionBlob] {
    try await still { store async throws(StoreError) in
      try await store.heldBlobs(among: hashes, in: space)
    }
  }

  func readableBlob(
    _ hash: ContentHash, in pattern: SpacePattern
  ) async throws(StoreError) -> MissionBlob? {
    try await still { store async throws(StoreError) in
      try await store.readableBlob(hash, in: pattern)
    }
  }

  func endBlobs(before moment: Int64) async throws(StoreError) -> Int {
    try await still { store async throws(StoreError) in try await store.endBlobs(before: moment) }
  }

  func neededBlobs(
    among hashes: [ContentHash]
  ) async throws(StoreError) -> [ContentHash] {
    try await still { store async throws(StoreError) in
      try await store.neededBlobs(among: hashes)
    }
  }
}

// The views of administrators.
extension StandStillStore {
  func overviews(
    after name: String, limit: Int, now: Int64
  ) async throws(StoreError) -> [SpaceOverview] {
    try await still { store async throws(StoreError) in
      try await store.overviews(after: name, limit: limit, now: now)
    }
  }

  func overview(of name: SpaceName, now: Int64) async throws(StoreError) -> SpaceOverview? {
    try await still { store async throws(StoreError) in
      try await store.overview(of: name, now: now)
    }
  }

  func devices(
    in space: Int64, after device: DeviceID?, limit: Int
  ) async throws(StoreError) -> [DeviceOverview] {
    try await still { store async throws(StoreError) in
      try await store.devices(in: space, after: device, limit: limit)
    }
  }

  func rejections(
    in space: Int64, before place: RejectionPlace?, limit: Int
  ) async throws(StoreError) -> [Rejection] {
    try await still { store async throws(StoreError) in
      try await store.rejections(in: space, before: place, limit: limit)
    }
  }

  func activity(
    in space: Int64, by unit: ActivityUnit, since moment: Int64
  ) async throws(StoreError) -> [ActivityCount] {
    try await still { store async throws(StoreError) in
      try await store.activity(in: space, by: unit, since: moment)
    }
  }

  func tableNames(
    in space: Int64, after table: Name?, limit: Int
  ) async throws(StoreError) -> [Name] {
    try await still { store async throws(StoreError) in
      try await store.tableNames(in: space, after: table, limit: limit)
    }
  }

  func listedRecords(
    of table: Name, in space: Int64, after record: Name?, limit: Int, characters: Int
  ) async throws(StoreError) -> [ListedRecord] {
    try await still { store async throws(StoreError) in
      try await store.listedRecords(
        of: table, in: space, after: record, limit: limit, characters: characters)
    }
  }

  func listedRecord(
    _ key: RecordKey, in space: Int64
  ) async throws(StoreError) -> ListedRecord? {
    try await still { store async throws(StoreError) in
      try await store.listedRecord(key, in: space)
    }
  }

  func history(
    of key: RecordKey, in space: Int64, within stretch: ClosedRange<SequenceNumber>, limit: Int,
    characters: Int
  ) async throws(StoreError) -> HistoryPart {
    try await still { store async throws(StoreError) in
      try await store.history(
        of: key, in: space, within: stretch, limit: limit, characters: characters)
    }
  }

  func conflicts(
    in space: Int64, before place: ConflictPlace?, limit: Int, characters: Int
  ) async throws(StoreError) -> [ListedConflict] {
    try await still { store async throws(StoreError) in
      try await store.conflicts(
        in: space, before: place, limit: limit, characters: characters)
    }
  }

  func identities(
    of devices: [DeviceID], in space: Int64
  ) async throws(StoreError) -> [DeviceIdentity] {
    try await still { store async throws(StoreError) in
      try await store.identities(of: devices, in: space)
    }
  }

  func checkSchema(
    _ document: SpaceSchema, of space: Int64, now: Int64, keepsRecords: Bool
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    try await still { store async throws(StoreError) in
      try await store.checkSchema(document, of: space, now: now, keepsRecords: keepsRecords)
    }
  }

  func note(_ observations: Observations, now: Int64) async throws(StoreError) {
    try await still { store async throws(StoreError) in
      try await store.note(observations, now: now)
    }
  }
}
