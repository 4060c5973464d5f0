import FerryProtocol
import Synchronization

@testable import FerrySyncServer

/// A store in memory for tests of the service.
///
/// It keeps spaces and tokens, and takes every packet as new. A test can make transactions wait or
/// fail.
final class ServiceStoreDouble: SyncStore {
  struct State {
    var spaces: [SpaceName: SpaceSummary] = [:]
    var tokens: [(token: StoredToken, hash: [UInt8], end: Int64?)] = []
    var audit: [AuditEntry] = []
    /// How often it was asked whether there are tokens.
    var openLookUps = 0
    var hadTokens = false
    var failure: StoreError?
    /// The pruning of a space fails.
    var pruningFailures: [Int64: StoreError] = [:]
    /// The pruned spaces, in order.
    var prunedSpaces: [Int64] = []
    /// A batch fails if it holds an operation on this record.
    var poisonedRecord: Name?
    var isHolding = false
    /// Observations wait until `release()`.
    var isHoldingNotes = false
    var held: [CheckedContinuation<Void, Never>] = []
    var heldWatchers: [CheckedContinuation<Void, Never>] = []
    var batches: [Int] = []
    var status = PacketReceipt.Status.applied
    var tokenLookUps = 0
    var hashReads = 0
    var spaceLookUps = 0
    var folds = 0
    var isClosed = false
    var schemas: [Int64: SpaceSchema] = [:]
    /// Whether each schema was applied whatever the records hold.
    var consents: [SchemaConsent] = []
    /// The roles of the packets, in order.
    var roles: [Role] = []
    /// The versions declared by the senders of packets and pulls, in order.
    var versions: [Int] = []
    /// The names of devices.
    var deviceNames: [DeviceID: DeviceName] = [:]
    /// Devices of none of the requesters.
    var foreignDevices: Set<DeviceID> = []
    /// The recorded observations.
    var observed: [Observations] = []
    /// Watchers of heads, by space.
    var watchers: [Int64: Int] = [:]
    /// The record shown to administrators.
    var listed: ListedRecord?
  }

  let state = Mutex(State())
  let moves = AsyncStream<HeadMove>.makeStream()

  init(spaces: [String] = []) {
    for (index, name) in spaces.enumerated() {
      guard let name = SpaceName(name) else { continue }
      state.withLock {
        $0.spaces[name] = SpaceSummary(id: Int64(index + 1), name: name, epoch: Epoch(7), head: 0)
      }
    }
  }

  /// Transactions wait from now on until `release()`.
  func hold() { state.withLock { $0.isHolding = true } }

  func release() {
    let held = state.withLock { state in
      defer { state.held = [] }
      (state.isHolding, state.isHoldingNotes) = (false, false)
      return state.held
    }
    for continuation in held { continuation.resume() }
  }

  /// Returns when a transaction is held back.
  func waitUntilHeld() async {
    await withCheckedContinuation { continuation in
      let isHeld = state.withLock { state in
        if state.held.isEmpty { state.heldWatchers.append(continuation) }
        return !state.held.isEmpty
      }
      if isHeld { continuation.resume() }
    }
  }

  func fail(_ failure: StoreError?) { state.withLock { $0.failure = failure } }

  /// Sets a space's head and notifies listeners of it, as another process would.
  func move(_ name: String, to head: SequenceNumber, tells: Bool = true) {
    guard let name = SpaceName(name) else { return }
    let move = state.withLock { state -> HeadMove? in
      guard let space = state.spaces[name] else { return nil }
      state.spaces[name] = SpaceSummary(
        id: space.id, name: name, epoch: space.epoch, head: head)
      return HeadMove(space: space.id, head: head)
    }
    if tells, let move { moves.continuation.yield(move) }
  }

  func createSpace(
    _ name: SpaceName, by mark: AuditMark?
  ) async throws(StoreError) -> SpaceSummary {
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      let space =
        state.spaces[name]
        ?? SpaceSummary(id: Int64(state.spaces.count + 1), name: name, epoch: Epoch(7), head: 0)
      state.spaces[name] = space
      return space
    }
  }

  func createSpace(
    _ name: SpaceName, by mark: AuditMark, quota: Int64
  ) async throws(StoreError) -> SpaceSummary? {
    let isFull = state.withLock { $0.spaces[name] == nil && $0.spaces.count >= quota }
    return isFull ? nil : try await createSpace(name)
  }

  func space(named name: SpaceName) async throws(StoreError) -> SpaceSummary? {
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      state.spaceLookUps += 1
      return state.spaces[name]
    }
  }

  func spaces() async throws(StoreError) -> [SpaceSummary] {
    state.withLock { $0.spaces.values.sorted { $0.name < $1.name } }
  }

  func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, room: IngestRoom
  ) async throws(StoreError) -> IngestBatch {
    await wait(while: \.isHolding)
    return try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      let isPoisoned = packets.contains { packet in
        packet.packet.operations.contains { $0.key.record == state.poisonedRecord }
      }
      if isPoisoned { throw .failed("a record cannot be written") }
      guard let known = state.spaces.values.first(where: { $0.id == space }) else {
        throw .failed("no space \(space)")
      }
      state.batches.append(packets.count)
      state.roles += packets.map(\.role)
      state.versions += packets.map(\.protocolVersion)
      var head = known.head
      let results = packets.map { packet -> IngestResult in
        if packet.needsOpenServer, state.hadTokens { return .refused(.noLongerOpen) }
        let count = SequenceNumber(packet.packet.operations.count)
        head += count
        return .accepted(
          PacketReceipt(
            tail: packet.packet.operations[Int(count) - 1].id, status: state.status,
            sequences: head - count + 1...head,
            outcomes: packet.packet.operations.map { _ in .applied }),
          released: [])
      }
      state.spaces[known.name] = SpaceSummary(
        id: space, name: known.name, epoch: known.epoch, head: head)
      moves.continuation.yield(HeadMove(space: space, head: head))
      return IngestBatch(head: head, epoch: known.epoch, results: results)
    }
  }

  func schema(of space: Int64) async throws(StoreError) -> SpaceSchema {
    state.withLock { $0.schemas[space] ?? .empty }
  }

  func applySchema(
    _ document: SpaceSchema, to space: Int64, now: Int64, consent: SchemaConsent,
    by mark: AuditMark?
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    state.withLock { state in
      state.schemas[space] = document
      state.consents.append(consent)
    }
    return .success(document)
  }

  /// Waits until `release()` if the store holds such calls.
  func wait(while isHeld: @Sendable (State) -> Bool) async {
    await withCheckedContinuation { continuation in
      let (isHolding, watchers) = state.withLock { state in
        guard isHeld(state) else { return (false, [CheckedContinuation<Void, Never>]()) }
        state.held.append(continuation)
        defer { state.heldWatchers = [] }
        return (true, state.heldWatchers)
      }
      for watcher in watchers { watcher.resume() }
      if !isHolding { continuation.resume() }
    }
  }

  func changes(
    in space: Int64, _ request: PullRequest, now: Int64
  ) async throws(StoreError) -> Result<[UInt8], Problem> {
    guard PageRoom.current?.reserve() ?? true else { throw .needsMemory }
    return try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      guard let known = state.spaces.values.first(where: { $0.id == space }) else {
        throw .failed("no space \(space)")
      }
      state.versions.append(request.protocolVersion)
      if let cursor = request.cursor, cursor.epoch != known.epoch {
        return .failure(Problem(.epochChanged, "the space has another epoch"))
      }
      var json = JSONWriter()
      json.beginPage(
        PageHead(
          epoch: known.epoch, head: known.head,
          cursor: Cursor(epoch: known.epoch, applied: known.head), more: false, appliedTail: nil,
          serverTime: now, count: 12))
      json.endPage()
      return .success(json.finish())
    }
  }

  func records(
    _ keys: [RecordKey], in space: Int64, now: Int64
  ) async throws(StoreError) -> Result<[UInt8], Problem> {
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      guard let known = state.spaces.values.first(where: { $0.id == space }) else {
        throw .failed("no space \(space)")
      }
      var page = PageBuilder(records: keys.count, byteLimit: .max)
      for key in keys { page.addAbsent(key) }
      return .success(page.finishRecords(epoch: known.epoch, head: known.head, now: now))
    }
  }

  /// Returns a space without records; two folds are needed before digests are there.
  func digests(
    in space: Int64, _ query: DigestQuery
  ) async throws(StoreError) -> Result<DigestAnswer, Problem> {
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      return .success(
        DigestAnswer(
          epoch: Epoch(7), head: 0, folded: 0,
          content: state.folds < 2 ? .behind : query.table == nil ? .tables([]) : .nodes([])))
    }
  }

  func foldDigests(in space: Int64) async throws(StoreError) -> SequenceNumber {
    state.withLock { $0.folds += 1 }
    return 0
  }

  func buffered(in space: Int64, of device: DeviceID) async throws(StoreError) -> (
    packets: Int, bytes: Int
  ) { (0, 0) }

  func usage(in space: Int64) async throws(StoreError) -> [(principal: String, usage: Usage)] { [] }

  func headMoves() -> AsyncStream<HeadMove> { moves.stream }

  func watchHead(of space: Int64) { state.withLock { $0.watchers[space, default: 0] += 1 } }

  func unwatchHead(of space: Int64) { state.withLock { $0.watchers[space, default: 0] -= 1 } }

  func check() async throws(StoreError) {
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
    }
  }

  func close() async { state.withLock { $0.isClosed = true } }
}
