import FerryPlatform
import FerryPostgres
import FerryProtocol

/// The store of production: PostgreSQL, shared by any number of nodes.
///
/// A row lock on the space makes the order of commits the order of sequences, so no reader ever
/// skips a change. Spaces are independent of each other.
package final class PostgresStore: SyncStore {
  /// Connections of one node by default. Each holds a thread; commits of one space use one at a
  /// time.
  package static let connectionsStandard = 8
  /// A longer call is not repeated: the caller would wait in vain.
  private static let retryLimit = Duration.seconds(2)
  /// A call held by a worker for longer is not repeated on the coordinator. Noticing a silent
  /// server takes up to four seconds.
  private static let workerLimit = Duration.seconds(10)
  /// The longest time of a check.
  private static let checkLimit = Duration.seconds(2)
  /// Attempts at a batch if the database breaks off. Operations take effect once, so a commit whose
  /// answer was lost may be repeated.
  private static let attempts = 3
  /// The interval of reads of the heads, for moves of a node that failed before it notified.
  package static let sweepIntervalStandard = Duration.seconds(20)

  private let pools: StorePools
  /// A separate connection, so a check shows the state of the database and not the load.
  private let checkPool: PostgresPool
  private let mistaken = MistakenDevices()
  /// The address for connections of holds.
  private let holdURL: String
  /// True if Citus has the tables on several servers.
  let isDistributed: Bool
  /// Serves pulls as far as it can.
  let replica: ReadReplica?
  /// The worker for packets and reads of spaces, if this node has one.
  private let worker: CitusWorker?
  private let listener: PostgresListener
  private let reported: PostgresHeads
  private let sweep: Task<Void, Never>
  package let makeEpoch: @Sendable () -> Epoch
  let makeRandom: @Sendable () -> UInt64
  var timelines: OwnTimelines { reported.timelines }
  private var pool: PostgresPool { pools.main }
  /// For maintenance in a separate session.
  var sessionPool: PostgresPool { pools.sessions }
  private let schemas = SchemaCache()
  package let limits: Limits
  private let quotas: Quotas

  /// Connects, and creates the tables if there are none.
  package convenience init(url: String) async throws(StoreError) {
    try await self.init(PostgresAddresses(url), limits: .standard)
  }

  /// - Parameters:
  ///   - addresses: The database.
  ///   - connections: How many at most, besides one to listen and one to check. A standby gets as
  ///     many.
  ///   - sweepInterval: The time between two reads of the heads, to find the moves of a node that
  ///     failed before it notified.
  ///   - createsIfMissing: Whether a store is made in a database that has none.
  ///   - makeEpoch: The source of epochs of new spaces, and of timelines in them.
  ///   - makeRandom: The source of the random part of the server's own identifiers.
  package init(
    _ addresses: PostgresAddresses, limits: Limits, quotas: Quotas = .standard,
    connections: Int = PostgresStore.connectionsStandard,
    sweepInterval: Duration = PostgresStore.sweepIntervalStandard, createsIfMissing: Bool = true,
    makeEpoch: @escaping @Sendable () -> Epoch = { .random },
    makeRandom: @escaping @Sendable () -> UInt64 = { .random(in: 0 ... .max) }
  ) async throws(StoreError) {
    self.limits = limits
    self.quotas = quotas
    self.makeRandom = makeRandom
    self.makeEpoch = makeEpoch
    do {
      let heads = try PostgresHeads { makeEpoch().value }
      reported = heads
      let url = addresses.main
      holdURL = addresses.direct ?? url
      var pools = try await StorePools(addresses, connections, isDistributed: false)
      isDistributed = try await pools.sessions.run { connection in
        try PostgresStoreSchema.prepare(connection, createsIfMissing: createsIfMissing)
        return try PostgresDistribution.isInForce(on: connection)
      }
      try Self.check(addresses, isDistributed: isDistributed)
      if isDistributed {
        await pools.close()
        pools = try await StorePools(addresses, connections, isDistributed: true)
      }
      self.pools = pools
      let pool = pools.main
      replica = try addresses.reads.map { address throws(PostgresError) in
        try ReadReplica(address, of: pool, connections: connections)
      }
      try await replica?.check()
      worker = try addresses.worker.map { address throws(PostgresError) in
        try CitusWorker(address, connections: connections)
      }
      try await worker?.check(pool)
      checkPool = try PostgresPool(
        url: url, connections: 1,
        options: StorePools.checkOptions(addresses.sharing, limit: Self.checkLimit))
      listener = try PostgresListener(
        url: addresses.direct ?? url, channels: heads.channels,
        preparation: PostgresDistribution.markUse
      ) { event in
        switch event {
        case .listening(let channels): Task { await heads.catchUp(on: channels, from: pool) }
        case .notification(_, let payload): heads.receive(payload)
        case .disconnected: break
        }
      }
      sweep = Task {
        while (try? await Task.sleep(for: sweepInterval)) != nil { await heads.sweep(pool) }
      }
    } catch {
      throw StoreError(postgres: error)
    }
  }

  deinit { sweep.cancel() }

  /// Throws if a standby is named, and the store is distributed: it would have none of the workers'
  /// rows. Throws if a worker is named, and the store is not distributed.
  private static func check(
    _ addresses: PostgresAddresses, isDistributed: Bool
  ) throws(StoreError) {
    if isDistributed, addresses.reads != nil {
      throw .failed("the store is distributed by Citus: --read-database has none of its rows")
    }
    if !isDistributed, addresses.worker != nil {
      throw .failed(
        "the store is not distributed by Citus: omit --worker-database, or run `ferryd migrate "
          + "--distribute`")
    }
  }

  /// Runs `body` on a connection, again if the database broke off.
  ///
  /// - Parameters:
  ///   - mayUseWorker: Whether it may run on ``worker``, and again on the coordinator. It must not
  ///     take numbers whose order counts for all nodes, such as an audit entry's.
  ///   - function: The caller, whose name the spans of traces have.
  func run<T: Sendable>(
    in lane: PoolLane = .push, mayUseWorker: Bool = false, for function: String = #function,
    _ body: @escaping @Sendable (PostgresConnection) throws -> T
  ) async throws(StoreError) -> T {
    let operation = StoreSpan.name(of: function)
    let body = PageRoom.taking(body)
    var attempt = 1
    let start = ContinuousClock.now
    while true {
      do {
        if mayUseWorker, attempt == 1, let worker,
          let value = try await worker.run(
            operation, in: lane, deadline: start + Self.workerLimit, body)
        {
          return try value.orNeedsMemory()
        }
        return try await pool.traced(operation, in: lane, body).orNeedsMemory()
      } catch {
        guard attempt < Self.attempts, .now - start < Self.retryLimit,
          (error as? PostgresError)?.isRetryable == true
        else {
          throw StoreError(postgres: error)
        }
        attempt += 1
      }
    }
  }

  // MARK: Packets and changes

  package func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, room: IngestRoom
  ) async throws(StoreError) -> IngestBatch {
    let ingest = PostgresIngest(
      space: space, limits: limits, quotas: quotas, now: now, schemas: schemas,
      timelines: timelines, mistaken: mistaken, room: room)
    let (before, batch) = try await IngestAttempt.repeated { matches async throws(StoreError) in
      try await run(mayUseWorker: true) { try ingest.run(packets, matches, on: $0) }
    } slice: { matcher async throws(StoreError) in
      // Without the space's lock; the connection is released after each slice.
      try await run(in: .upkeep, mayUseWorker: true) { connection in
        try matcher.slice { try connection.show(&$0, in: space) }
      }
    }
    // The commit of a known packet may be unconfirmed, and not announced.
    let isKnown = batch.results.contains {
      if case .accepted(let receipt, _) = $0 { receipt.status == .duplicate } else { false }
    }
    if batch.head > before || isKnown { notify(batch.head, of: space) }
    return batch
  }

  package func applySchema(
    _ document: SpaceSchema, to space: Int64, now: Int64, consent: SchemaConsent, onlyChecks: Bool,
    by mark: AuditMark?
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    let change = PostgresSchemaChange(
      space: space, now: now, consent: consent, timelines: timelines,
      onlyChecks: onlyChecks, mark: mark)
    let random = makeRandom()
    let (head, answer) = try await run { connection in
      try change.apply(document, random: random, on: connection)
    }
    if let head { notify(head, of: space) }
    return answer
  }

  package func changes(
    in space: Int64, _ request: PullRequest, now: Int64
  ) async throws(StoreError) -> Result<[UInt8], Problem> {
    let pull = PostgresPull(space: space, request: request, now: now)
    let build = { @Sendable (connection: PostgresConnection) throws in
      try pull.run(on: connection)
    }
    if let replica {
      do {
        if let page = try await replica.run(PageRoom.taking(build)) {
          return try page.orNeedsMemory()
        }
      } catch {
        throw StoreError(postgres: error)
      }
    }
    return try await run(in: .pull, mayUseWorker: true, build)
  }

  // MARK: Life

  /// Notifies all nodes of a space's new head.
  func notify(_ head: SequenceNumber, of space: Int64) {
    reported.notify(HeadMove(space: space, head: head), through: pool)
  }

  package var heads: HeadMoves { reported.moves }

  package var counts: StoreCounts {
    var counts = StoreCounts()
    counts.notifications = reported.notifications
    (counts.standbyPulls, counts.workerRequests) = (replica?.work, worker?.work)
    return counts
  }

  package func check() async throws(StoreError) {
    let checkPool = checkPool
    do {
      try await withinLimit(Self.checkLimit) {
        try await checkPool.run { connection in
          _ = try connection.query(PostgresStatement("check", "SELECT 1 FROM ferry_schema LIMIT 1"))
          // The server's own state has come with the answer.
          if connection.isReadOnly { throw PostgresError.readOnly }
        }
      }
    } catch {
      throw StoreError(postgres: error)
    }
  }

  package func reclaim() async throws(StoreError) -> ReclaimStep {
    do {
      return try await sessionPool.run { [isDistributed] connection in
        try PostgresReclaiming(isDistributed: isDistributed).run(on: connection)
      }
    } catch {
      throw StoreError(postgres: error)
    }
  }

  package func lockContent(isExclusive: Bool) async throws(StoreError) -> (any Sendable)? {
    do {
      return try await PostgresContentHold.acquire(holdURL, isExclusive: isExclusive)
    } catch {
      throw StoreError(postgres: error)
    }
  }

  package func close() async {
    sweep.cancel()
    await reported.finish()
    await listener.close()
    await checkPool.close()
    await replica?.close()
    await worker?.close()
    await pools.close()
  }
}

extension StoreError {
  /// Creates a database error as one of this module's.
  init(postgres error: any Error) {
    switch error {
    case let error as StoreError: self = error
    case let error as PostgresError:
      let reason = String(describing: error)
      switch (error.kind, error.sqlState) {
      case (.readOnly, _), (_, "25006"): self = .readOnly(reason)
      case (.noAnswer, _): self = .unavailable(reason)
      // A prepared statement is missing, or belongs to another connection.
      case (_, "26000"), (_, "42P05"):
        self = .failed(
          reason + "; if --database is a proxy that pools transactions, such as pgbouncer, also "
            + "give the database's direct address with --listen-url")
      // A lock or a statement took too long: the database is there.
      case (.busy, _), (.server, "55P03"), (.server, "57014"): self = .busy(reason)
      default:
        self =
          error.isRetryable || error.sqlState?.begins(with: "53") == true
          ? .unavailable(reason) : .failed(reason)
      }
    default: self = .failed(String(describing: error))
    }
  }
}
