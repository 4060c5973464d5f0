import FerryProtocol
import FerrySQLite
import Synchronization

@testable import FerrySyncServer

/// A store for tests of the service: an embedded store's tables in memory, in which every packet is
/// new and writes no record. A test can make transactions wait or fail, and count the calls.
final class ServiceStoreDouble: SyncStore {
  struct State {
    /// Calls of the functions that use a connection.
    var calls: [String: Int] = [:]
    var failure: StoreError?
    /// The next call of a function fails.
    var failures: [String: StoreError] = [:]
    /// A batch fails if it holds an operation on this record.
    var poisonedRecord: Name?
    var isHolding = false
    /// Observations wait until `release()`.
    var isHoldingNotes = false
    var held: [CheckedContinuation<Void, Never>] = []
    var heldWatchers: [CheckedContinuation<Void, Never>] = []
    var batches: [Int] = []
    var status = PacketReceipt.Status.applied
    var isClosed = false
    /// Whether each schema was applied whatever the records hold.
    var consents: [SchemaConsent] = []
    /// The roles of the packets, in order.
    var roles: [Role] = []
    /// The versions declared by the senders of packets and pulls, in order.
    var versions: [Int] = []
  }

  let state = Mutex(State())
  let heads = HeadMoves()
  let limits = Limits.standard
  let makeEpoch: @Sendable () -> Epoch = { Epoch(7) }
  private let file: Mutex<SQLiteStoreFile>

  init(spaces: [String] = []) {
    do {
      let file = try SQLiteStoreFile(path: SQLiteConnection.memory, limits: .standard)
      for name in spaces.compactMap({ SpaceName($0) }) {
        _ = try file.createSpace(name, epoch: Epoch(7))
      }
      self.file = Mutex(file)
    } catch {
      preconditionFailure("\(error)")
    }
  }

  /// Runs `body` with the tables.
  func use<T: Sendable>(
    _ body: @Sendable (SQLiteStoreFile) throws -> T
  ) throws(StoreError) -> T {
    do {
      return try file.withLock { try body($0) }
    } catch let error as StoreError {
      throw error
    } catch {
      throw .failed("\(error)")
    }
  }

  func lend<T: Sendable>(
    _ use: PlainUse, for function: String,
    _ body: @escaping @Sendable (any PlainConnection) throws -> T
  ) async throws(StoreError) -> T {
    if function == "store(_:now:)" { await wait(while: \.isHoldingNotes) }
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      if let failure = state.failures.removeValue(forKey: function) { throw failure }
      state.calls[function, default: 0] += 1
    }
    return try self.use { try body($0) }
  }

  func change<T: Sendable>(
    _ space: Int64, now: Int64, for function: String,
    _ body: @escaping @Sendable (SpaceChange) throws -> T
  ) async throws(StoreError) -> T {
    try use { try $0.change(space, now: now, random: 1, body) }
  }

  // MARK: Tests

  /// Returns the number of calls of a function, such as `token(hash:)`.
  func calls(_ function: String) -> Int { state.withLock { $0.calls[function] ?? 0 } }

  /// Deletes all tokens, as another process does.
  func removeTokens() throws {
    try use { try $0.connection.execute("DELETE FROM token_secrets; DELETE FROM access_tokens") }
  }

  /// Adds a device of the first space.
  func add(_ device: DeviceID, of principal: Principal) throws {
    try use { file in
      var effects = IngestEffects(space: try file.spaceState(1))
      effects.owners = [device: principal]
      try file.perform(effects.frame(in: 1, now: 0))
    }
  }

  /// Adds records of the first space.
  func add(_ records: [Name], of table: Name, _ state: RecordState) throws {
    try use { file in
      try file.together {
        let insert = try file.recordInsertion()
        for (place, record) in records.enumerated() {
          _ = try insert.run(
            1,
            IngestEffects.RecordRow(
              key: RecordKey(table: table, record: record), sequence: SequenceNumber(place) + 1,
              wholeBelow: 0, isDead: false, state: state.stored(), isNew: true))
        }
      }
    }
    try setHead(SequenceNumber(records.count), of: 1)
  }

  /// The next call of a function fails.
  func failNext(_ function: String, with failure: StoreError) {
    state.withLock { $0.failures[function] = failure }
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
    do {
      guard let name = SpaceName(name), let space = try use({ try $0.spaceNumber(named: name) })
      else { return }
      try setHead(head, of: space)
      if tells { heads.republish([HeadMove(space: space, head: head)]) }
    } catch {
      preconditionFailure("\(error)")
    }
  }

  private func setHead(_ head: SequenceNumber, of space: Int64) throws(StoreError) {
    try use { file in
      _ = try file.connection.run("UPDATE spaces SET head = ? WHERE id = ?", head, space)
    }
  }

  /// Returns a space by number.
  private func known(_ space: Int64) async throws(StoreError) -> SpaceSummary {
    guard let known = try await spaces().first(where: { $0.id == space }) else {
      throw .failed("no space \(space)")
    }
    return known
  }

  // MARK: Packets

  func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, room: IngestRoom
  ) async throws(StoreError) -> IngestBatch {
    await wait(while: \.isHolding)
    let known = try await known(space)
    let hadTokens = try use { try $0.hasEverHadTokens() }
    let batch = try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
      let isPoisoned = packets.contains { packet in
        packet.packet.operations.contains { $0.key.record == state.poisonedRecord }
      }
      if isPoisoned { throw .failed("a record cannot be written") }
      state.batches.append(packets.count)
      state.roles += packets.map(\.role)
      state.versions += packets.map(\.protocolVersion)
      var head = known.head
      let results = packets.map { packet -> IngestResult in
        if packet.needsOpenServer, hadTokens { return .refused(.noLongerOpen) }
        let count = SequenceNumber(packet.packet.operations.count)
        head += count
        return .accepted(
          PacketReceipt(
            tail: packet.packet.operations[Int(count) - 1].id, status: state.status,
            sequences: head - count + 1...head,
            outcomes: packet.packet.operations.map { _ in .applied }),
          released: [])
      }
      return IngestBatch(head: head, epoch: known.epoch, results: results)
    }
    try setHead(batch.head, of: space)
    heads.publish(HeadMove(space: space, head: batch.head))
    return batch
  }

  func applySchema(
    _ document: SpaceSchema, to space: Int64, now: Int64, consent: SchemaConsent, onlyChecks: Bool,
    by mark: AuditMark?
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    if onlyChecks { return .success(document) }
    state.withLock { $0.consents.append(consent) }
    return try use {
      try $0.applySchema(document, to: space, now: now, consent: consent, random: 1)
    }
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
    let known = try await known(space)
    return try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
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

  func reclaim() async throws(StoreError) -> ReclaimStep { .done }

  func check() async throws(StoreError) {
    try state.withLock { (state) throws(StoreError) in
      if let failure = state.failure { throw failure }
    }
  }

  func close() async { state.withLock { $0.isClosed = true } }
}
