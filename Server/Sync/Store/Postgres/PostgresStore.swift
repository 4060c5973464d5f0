import FerryProtocol
import Postgres

/// The store of production: PostgreSQL, shared by any number of nodes.
///
/// A row lock on the space makes the order of commits the order of sequences, so no reader ever
/// skips a change; spaces are independent of each other.
package final class PostgresStore: SyncStore {
  /// Connections of one node. Each holds a thread; commits of one space use one at a time.
  private static let connections = 8
  /// How often a batch is tried again when the database breaks off. Operations take effect once,
  /// so a commit whose answer was lost may be repeated.
  private static let attempts = 3
  private static let channel = "ferry_head"

  /// A move is notified after its commit. In it, PostgreSQL would hold a lock of the whole
  /// cluster until the transaction is on the disk, and all spaces would wait for each other.
  private static let notify = PostgresStatement("notify", "SELECT pg_notify($1, $2)")
  /// How often the heads are read, for moves that a node did not live to notify.
  private static let sweepInterval = Duration.seconds(20)

  private let pool: PostgresPool
  private let listener: PostgresListener
  let moves: HeadMoves
  private let sweep: Task<Void, Never>
  private let makeEpoch: @Sendable () -> Epoch
  let makeRandom: @Sendable () -> UInt64
  private let schemas = SchemaCache()
  let timelines: OwnTimelines
  let limits: Limits

  /// Connects and migrates.
  package convenience init(url: String) async throws(StoreError) {
    try await self.init(url: url, limits: .standard)
  }

  /// - Parameters:
  ///   - makes: Whether a store is made in a database that has none.
  ///   - makeEpoch: Where the lines of history of new spaces, and timelines in them, come from.
  ///   - makeRandom: Where the random part of the server's own identifiers comes from.
  package init(
    url: String, limits: Limits, makes: Bool = true,
    makeEpoch: @escaping @Sendable () -> Epoch = { .random },
    makeRandom: @escaping @Sendable () -> UInt64 = { .random(in: 0 ... .max) }
  ) async throws(StoreError) {
    self.limits = limits
    self.makeRandom = makeRandom
    self.makeEpoch = makeEpoch
    let timelines = OwnTimelines { makeEpoch().value }
    self.timelines = timelines
    let moves = HeadMoves()
    self.moves = moves
    do {
      let pool = try PostgresPool(
        url: url, connections: Self.connections,
        prepareConnection: PostgresStoreSchema.connectionSettings)
      self.pool = pool
      try await pool.run { try PostgresStoreSchema.migrate($0, makes: makes) }
      listener = try PostgresListener(url: url, channels: [Self.channel]) { event in
        switch event {
        case .listening:
          // What moved while nobody listened is read now.
          Task { moves.tellAgain((try? await pool.run(Self.heads)) ?? []) }
        case .notification(_, let payload):
          guard let move = HeadMove(payload: payload) else { return }
          timelines.note(move)
          moves.tell(move)
        case .disconnected: break
        }
      }
      sweep = Task {
        while (try? await Task.sleep(for: Self.sweepInterval)) != nil {
          for move in (try? await pool.run(Self.heads)) ?? [] {
            timelines.note(move)
            moves.tell(move)
          }
        }
      }
    } catch {
      throw StoreError(postgres: error)
    }
  }

  deinit { sweep.cancel() }

  /// Runs `body` on a connection, again where the database broke off.
  func run<T: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws -> T
  ) async throws(StoreError) -> T {
    var attempt = 1
    while true {
      do {
        return try await pool.run(body)
      } catch {
        guard attempt < Self.attempts, (error as? PostgresError)?.isRetryable == true else {
          throw StoreError(postgres: error)
        }
        attempt += 1
      }
    }
  }

  @Sendable private static func heads(_ connection: PostgresConnection) throws -> [HeadMove] {
    try connection.query(PostgresStatement("heads", "SELECT id, head FROM spaces WHERE head > 0"))
      .map {
        HeadMove(space: try $0.int8(0), head: try $0.int8(1))
      }
  }

  // MARK: Packets and changes

  package func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64
  ) async throws(StoreError) -> IngestBatch {
    let (limits, schemas, timelines) = (limits, schemas, timelines)
    return try await run { [moves] connection in
      let ingest = PostgresIngest(
        space: space, limits: limits, now: now, schemas: schemas, timelines: timelines)
      let (moved, batch) = try ingest.run(packets, on: connection)
      if moved { Self.tell(HeadMove(space: space, head: batch.head), moves, connection) }
      return batch
    }
  }

  /// What is told is durable whether or not the other nodes hear of it now.
  static func tell(
    _ move: HeadMove, _ moves: HeadMoves, _ connection: PostgresConnection
  ) {
    moves.tell(move)
    _ = try? connection.query(notify, [.text(channel), .text(move.payload)])
  }

  package func schema(of space: Int64) async throws(StoreError) -> SpaceSchema {
    try await run { connection in
      try SpaceSchema(stored: PostgresSchemaChange.record(in: space, on: connection)) ?? .empty
    }
  }

  package func applySchema(
    _ document: SpaceSchema, to space: Int64, now: Int64, keepsRecords: Bool
  ) async throws(StoreError) -> Result<SpaceSchema, Problem> {
    let change = PostgresSchemaChange(
      space: space, now: now, keepsRecords: keepsRecords, timelines: timelines)
    let random = makeRandom()
    return try await run { [moves] connection in
      let (head, answer) = try change.apply(document, random: random, on: connection)
      if let head { Self.tell(HeadMove(space: space, head: head), moves, connection) }
      return answer
    }
  }

  package func changes(
    in space: Int64, _ request: PullRequest, now: Int64
  ) async throws(StoreError) -> Result<[UInt8], Problem> {
    let pull = PostgresPull(space: space, request: request, now: now)
    return try await run { try pull.run(on: $0) }
  }

  package func records(
    _ keys: [RecordKey], in space: Int64, now: Int64
  ) async throws(StoreError) -> Result<[UInt8], Problem> {
    let fetch = PostgresRecords(
      space: space, keys: keys, byteLimit: limits.pageBytes, now: now)
    return try await run { try fetch.run(on: $0) }
  }

  package func digests(
    in space: Int64, _ query: DigestQuery
  ) async throws(StoreError) -> Result<DigestAnswer, Problem> {
    try await run { try PostgresDigests(space: space).answer(query, on: $0) }
  }

  package func foldDigests(in space: Int64) async throws(StoreError) -> SequenceNumber {
    try await run { try PostgresDigestFold(space: space).run(on: $0) }
  }

  package func parked(
    in space: Int64, of device: DeviceID
  ) async throws(StoreError) -> (packets: Int, bytes: Int) {
    try await run { connection in
      var parameters: PostgresParameters = [.int8(space)]
      parameters.append(uuidBytes: device.value.bytes)
      let row = try connection.query(
        PostgresStatement(
          "parked_count",
          """
          SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM parked
          WHERE space = $1 AND device = $2
          """), parameters)[0]
      return (Int(try row.int8(0)), Int(try row.int8(1)))
    }
  }

  // MARK: Spaces

  private static let summaryColumns = "id, name, epoch, head, floor, retention"

  package func createSpace(_ name: SpaceName) async throws(StoreError) -> SpaceSummary {
    let epoch = Int64(bitPattern: makeEpoch().value)
    return try await run { connection in
      var parameters: PostgresParameters = [.text(name.value), .int8(epoch)]
      parameters.append(Retention.standard.milliseconds)
      _ = try connection.query(
        PostgresStatement(
          "space_create",
          """
          INSERT INTO spaces(name, epoch, retention) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
          """), parameters)
      guard let space = try Self.space(name, connection) else {
        throw StoreError.failed("space \(name) was not made")
      }
      return space
    }
  }

  package func space(named name: SpaceName) async throws(StoreError) -> SpaceSummary? {
    try await run { try Self.space(name, $0) }
  }

  package func spaces() async throws(StoreError) -> [SpaceSummary] {
    try await run { connection in
      try connection.query(
        PostgresStatement("spaces", "SELECT \(Self.summaryColumns) FROM spaces ORDER BY name")
      ).compactMap { try SpaceSummary($0) }
    }
  }

  private static func space(
    _ name: SpaceName, _ connection: PostgresConnection
  ) throws -> SpaceSummary? {
    try connection.query(
      PostgresStatement("space", "SELECT \(Self.summaryColumns) FROM spaces WHERE name = $1"),
      [.text(name.value)]
    ).first.flatMap { try SpaceSummary($0) }
  }

  // MARK: Tokens

  package func addToken(_ token: StoredToken) async throws(StoreError) {
    _ = try await createSpace(token.space)
    try await run { connection in
      try connection.transaction { connection in
        _ = try connection.pipeline { pipeline in
          pipeline.add(
            PostgresStatement("token_add", "INSERT INTO tokens VALUES ($1, $2, $3, $4)"),
            [
              .bytea(token.hash), .text(token.space.value), .text(token.role.rawValue),
              .int8(token.createdAt),
            ])
          pipeline.add(
            PostgresStatement(
              "token_noted",
              "INSERT INTO meta VALUES ('had_tokens', '1') ON CONFLICT DO NOTHING"))
          pipeline.commit()
        }
      }
    }
  }

  private static let selectTokens = "SELECT hash, space, role, created_at FROM tokens"

  package func token(hash: [UInt8]) async throws(StoreError) -> StoredToken? {
    try await run { connection in
      try connection.query(
        PostgresStatement("token", "\(Self.selectTokens) WHERE hash = $1"), [.bytea(hash)]
      ).first.flatMap { try StoredToken($0) }
    }
  }

  package func tokens() async throws(StoreError) -> [StoredToken] {
    try await run { connection in
      try connection.query(
        PostgresStatement("tokens", "\(Self.selectTokens) ORDER BY created_at, hash")
      ).compactMap { try StoredToken($0) }
    }
  }

  package func removeToken(hash: [UInt8]) async throws(StoreError) -> Bool {
    try await run { connection in
      try connection.query(
        PostgresStatement("token_remove", "DELETE FROM tokens WHERE hash = $1 RETURNING 1"),
        [.bytea(hash)]
      ).first != nil
    }
  }

  package func hasEverHadTokens() async throws(StoreError) -> Bool {
    try await run { connection in
      try connection.query(
        PostgresStatement("had_tokens", "SELECT 1 FROM meta WHERE key = 'had_tokens'")
      ).first != nil
    }
  }

  // MARK: Life

  package func headMoves() -> AsyncStream<HeadMove> { moves.stream() }

  package func check() async throws(StoreError) {
    try await run { _ = try $0.query(PostgresStatement("check", "SELECT 1 FROM spaces LIMIT 1")) }
  }

  package func close() async {
    sweep.cancel()
    await listener.close()
    moves.finish()
    await pool.close()
  }
}

extension HeadMove {
  /// What travels between nodes: `space:head`.
  var payload: String { "\(space):\(head)" }

  init?(payload: String) {
    let parts = payload.split(separator: ":")
    guard parts.count == 2, let space = Int64(parts[0]), let head = Int64(parts[1]) else {
      return nil
    }
    self.init(space: space, head: head)
  }
}

extension StoreError {
  /// A database error as one of this module's.
  init(postgres error: any Error) {
    switch error {
    case let error as StoreError: self = error
    case let error as PostgresError:
      self =
        error.isRetryable || error.sqlState?.hasPrefix("53") == true
        ? .unavailable(String(describing: error)) : .failed(String(describing: error))
    default: self = .failed(String(describing: error))
    }
  }
}

extension SpaceSummary {
  fileprivate init?(_ row: PostgresRow) throws {
    guard let name = SpaceName(try row.text(1)) else { return nil }
    self.init(
      id: try row.int8(0), name: name,
      epoch: Epoch(UInt64(bitPattern: try row.int8(2))), head: try row.int8(3),
      floor: try row.int8(4), retention: Retention(milliseconds: try row.ifPresent(5)))
  }
}

extension StoredToken {
  fileprivate init?(_ row: PostgresRow) throws {
    guard let space = SpaceName(try row.text(1)), let role = Role(rawValue: try row.text(2)) else {
      return nil
    }
    self.init(
      hash: try row.bytes(0), space: space, role: role, createdAt: try row.int8(3))
  }
}
