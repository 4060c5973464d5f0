import FerryHTTPServer
import FerryPlatform
import FerryProtocol
import Synchronization

/// A writer of packets to the store, in groups for each space. Spaces do not wait for each other.
///
/// A cancelled caller still gets the answer, and the packet is committed. The packet may be under
/// way already, and sending it again changes nothing.
package final class PacketCommitter: Sendable {
  typealias Answer = Result<PacketAnswer, Problem>

  /// A caller with a waiting packet.
  struct Ticket: Sendable {
    let continuation: CheckedContinuation<Answer, Never>
    /// The span of the request; `nil` if it is not exported.
    let request: OpenSpan?
    /// The span of the wait for the transaction.
    let wait: OpenSpan?

    func resume(returning answer: Answer) { continuation.resume(returning: answer) }
  }

  typealias Queue = CommitQueue<Ticket>

  private struct State {
    var queues: [Int64: Queue] = [:]
    /// Bytes of waiting packets in all spaces.
    var waitingBytes = 0
  }

  /// The most bytes of waiting packets in all spaces together.
  static var totalBytes: Int { 256 << 20 }
  /// The time for which a transaction waits for the devices of the last one to come back.
  private static let gatheringLimit = Duration.microseconds(500)

  private let store: any SyncStore
  private let clock: ServiceClock
  private let metrics: ServiceMetrics
  private let log: ServiceLog
  private let bounds: Queue.Bounds
  private let memory: MemoryBudget
  private let executor: (any TaskExecutor)?
  private let state = Mutex(State())

  init(
    store: any SyncStore, clock: ServiceClock, metrics: ServiceMetrics, log: ServiceLog,
    memory: MemoryBudget, bounds: Queue.Bounds = Queue.Bounds(),
    executor: (any TaskExecutor)? = nil
  ) {
    self.store = store
    self.clock = clock
    self.metrics = metrics
    self.log = log
    self.memory = memory
    self.bounds = bounds
    self.executor = executor
  }

  /// Commits one packet and returns when it is durable. Throws the problem of a rejected packet;
  /// `unavailable` if the queue is full or the store is not available.
  package func commit(
    _ packet: IncomingPacket, into space: Int64
  ) async throws(Problem) -> PacketAnswer {
    let request = OpenSpan.current
    let answer = await withCheckedContinuation { continuation in
      add(
        packet, space,
        Ticket(continuation: continuation, request: request, wait: request?.child()))
    }
    return try answer.get()
  }

  /// Returns the number of a space's packets in the queue for a transaction.
  func waitingCount(in space: Int64) -> Int {
    state.withLock { $0.queues[space]?.waitingCount ?? 0 }
  }

  private func add(_ packet: IncomingPacket, _ space: Int64, _ ticket: Ticket) {
    let refused = state.withLock { state -> [Ticket] in
      guard state.waitingBytes + packet.byteCount <= Self.totalBytes else { return [ticket] }
      let refused = state.queues[space, default: Queue(bounds: bounds)].add(packet, ticket: ticket)
      state.waitingBytes += packet.byteCount - refused.byteCount
      return refused.map(\.ticket)
    }
    let fault = Problem(
      .unavailable, "too many packets wait for the store; send this one again in a moment")
    for ticket in refused { ticket.resume(returning: .failure(fault)) }
    start(space)
  }

  /// Starts the lanes of a space with work to do.
  private func start(_ space: Int64) {
    for lane in Queue.Lane.allCases {
      let batch = dequeue(lane, space)
      guard !batch.isEmpty else { continue }
      Task.detached(executorPreference: executor) { await self.drain(lane, space, from: batch) }
    }
  }

  private func drain(_ lane: Queue.Lane, _ space: Int64, from first: [Queue.Entry]) async {
    var batch = first
    while !batch.isEmpty {
      await commit(batch, space)
      let gathering = state.withLock { $0.queues[space]?.finishBatch(lane) }
      if let number = gathering ?? nil { gather(number, space) }
      batch = dequeue(lane, space)
      // This transaction may have held up packets of the other lane.
      start(space)
    }
  }

  /// Ends a wait for devices to come back in time.
  private func gather(_ number: Int, _ space: Int64) {
    // Not on the executor, where the time would wait behind long computations.
    Task.detached {
      try? await Task.sleep(for: Self.gatheringLimit)
      self.state.withLock { $0.queues[space]?.endGathering(number) }
      self.start(space)
    }
  }

  private func dequeue(_ lane: Queue.Lane, _ space: Int64) -> [Queue.Entry] {
    state.withLock { state in
      guard let batch = state.queues[space]?.dequeueBatch(lane) else { return [] }
      state.waitingBytes -= batch.byteCount
      if state.queues[space]?.isIdle == true { state.queues[space] = nil }
      return batch
    }
  }

  /// Runs one transaction. If the database fails on a group, each packet of it is tried alone, so
  /// one packet cannot make the others fail.
  private func commit(_ batch: [Queue.Entry], _ space: Int64) async {
    do {
      let done = try await ingest(batch, space)
      precondition(done.results.count == batch.count, "a store answers each packet")
      metrics.count(done, of: batch.map(\.packet))
      for (entry, result) in zip(batch, done.results) {
        entry.ticket.resume(returning: answer(result, done))
      }
    } catch .needsMemory where batch.count > 1 {
      for entry in batch { await commit([entry], space) }
    } catch .failed(let why) where batch.count > 1 {
      report(.failed(why))
      for entry in batch { await commit([entry], space) }
    } catch {
      report(error)
      for entry in batch { entry.ticket.resume(returning: .failure(Problem(error))) }
    }
  }

  /// Runs one transaction with memory of the budget. A packet with large needs waits for memory
  /// outside of any transaction; packets in a group do not.
  private func ingest(
    _ batch: [Queue.Entry], _ space: Int64
  ) async throws(StoreError) -> IngestBatch {
    let account = batch.memoryAccount(in: space)
    if let grant = memory.grantAtOnce(IngestRoom.sliced.memory, account: account) {
      defer { withExtendedLifetime(grant) {} }
      return try await ingest(batch, space, .sliced)
    }
    do throws(StoreError) {
      return try await ingest(batch, space, .small, account)
    } catch .needsMemory where batch.count == 1 {
      return try await ingest(batch, space, .sliced, account)
    }
  }

  private func ingest(
    _ batch: [Queue.Entry], _ space: Int64, _ room: IngestRoom, _ account: String
  ) async throws(StoreError) -> IngestBatch {
    guard let grant = await memory.grant(room.memory, account: account) else {
      throw .busy("the memory of the server is in use")
    }
    defer { withExtendedLifetime(grant) {} }
    return try await ingest(batch, space, room)
  }

  private func ingest(
    _ batch: [Queue.Entry], _ space: Int64, _ room: IngestRoom
  ) async throws(StoreError) -> IngestBatch {
    let (packets, now) = (batch.map(\.packet), clock.wall())
    let ingest = { [store] () async -> Result<IngestBatch, StoreError> in
      do throws(StoreError) {
        return .success(try await store.ingest(packets, into: space, now: now, room: room))
      } catch {
        return .failure(error)
      }
    }
    // The oldest packet brings the others along.
    let user = batch.first.map(\.packet.principal) ?? .anonymous
    let flow = WorkFlow(user: user == .anonymous ? "" : user.account.id, part: "\(space)")
    guard let span = OpenSpan.shared(by: batch.compactMap(\.ticket.request)) else {
      return try await flow.run(ingest).get()
    }
    for entry in batch { entry.ticket.wait?.end("wait for the commit") }
    let attributes = [
      SpanAttribute("ferry.commit.packets", packets.count),
      SpanAttribute("ferry.commit.operations", batch.operationCount),
    ]
    let result = await span.run { await flow.run(ingest) }
    do {
      let done = try result.get()
      span.end("commit", .internal, attributes)
      return done
    } catch {
      span.end("commit", .internal, attributes, failure: StoreSpan.reason(error))
      throw error
    }
  }

  private func report(_ error: StoreError) {
    metrics.countStoreError()
    log.write(error)
  }

  private func answer(_ result: IngestResult, _ batch: IngestBatch) -> Answer {
    switch result {
    case .accepted(let receipt, let released):
      .success(
        PacketAnswer(
          receipt: receipt, released: released, epoch: batch.epoch, head: batch.head,
          serverTime: clock.wall()))
    case .refused(let problem): .failure(problem)
    }
  }
}

extension [PacketCommitter.Queue.Entry] {
  fileprivate var byteCount: Int { reduce(0) { $0 + $1.packet.byteCount } }
  fileprivate var operationCount: Int { reduce(0) { $0 + $1.operationCount } }

  /// The account for the memory of a transaction: the sender's, or the space's if there are
  /// several.
  fileprivate func memoryAccount(in space: Int64) -> String {
    let shared = "space \(space)"
    guard let owner = first?.packet.principal.account, owner != .anonymous else { return shared }
    return allSatisfy { $0.packet.principal.account == owner } ? owner.id : shared
  }
}

extension Problem {
  /// Maps a store's error to the problem for the client; the error itself goes to the log.
  init(_ error: StoreError) {
    switch error {
    case .unavailable:
      self.init(.unavailable, "the store cannot be reached; send the request again in a moment")
    case .busy:
      self.init(.unavailable, "the store is busy; send the request again in a moment")
    case .needsMemory:
      self.init(
        .unavailable, "the server's memory is in use; send the request again in a moment")
    case .readOnly:
      self.init(
        .unavailable,
        "the store's database is read-only or a standby; send the request again when its primary "
          + "is available")
    case .failed:
      self.init(.internalError, "the store failed; see the server's log")
    }
  }
}
