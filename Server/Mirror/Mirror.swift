import FerryPersistence
import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerrySyncClient

/// Keeps tables of PostgreSQL in sync with a space, both ways.
///
/// A mirror is a device of the space. Its replica is a SQLite file, with the queue, the conflicts and
/// the guarantees of every device. The mirror carries rows between the file and PostgreSQL:
///
/// - **Out.** Triggers of the file note changed rows. One transaction of PostgreSQL brings all rows of
///   one state of the file.
/// - **In.** Triggers of PostgreSQL record the writes of programs in the same transaction. The
///   mirror makes them in its replica. PostgreSQL keeps them until the space has them.
///
/// Each step may run again: a process or a server can be killed at any moment.
package final class Mirror: Sendable {
  package let configuration: MirrorConfiguration
  private let folder: MirrorFolder
  private let replica: Replica
  private let database: MirrorDatabase
  /// Whether no other mirror uses the database's connections.
  private let ownsDatabase: Bool
  let ledger: MirrorLedger
  var pool: PostgresPool { database.pool }
  /// An event in one word, and its description.
  package typealias Log = @Sendable (_ event: String, _ detail: String) -> Void
  private let log: Log
  /// Held as long as this value lives.
  private let lock: MirrorLock?

  private init(
    _ configuration: MirrorConfiguration, _ folder: MirrorFolder, _ replica: Replica,
    _ database: MirrorDatabase, ownsDatabase: Bool, _ ledger: MirrorLedger, _ lock: MirrorLock?,
    _ log: @escaping Log
  ) {
    (self.lock, self.ownsDatabase) = (lock, ownsDatabase)
    (self.configuration, self.folder, self.replica) = (configuration, folder, replica)
    (self.database, self.ledger, self.log) = (database, ledger, log)
  }

  // MARK: Opening

  /// Opens a mirror that was added.
  ///
  /// - Parameters:
  ///   - isAlone: whether no other process may carry rows meanwhile; only a look needs none.
  ///   - shared: the connections of all mirrors of a group; `nil` for own ones.
  package static func open(
    _ folder: MirrorFolder, isAlone: Bool = true, sharing shared: MirrorDatabase? = nil,
    log: @escaping Log = { _, _ in }
  ) async throws -> Mirror {
    let configuration = try folder.configuration()
    let lock = isAlone ? try folder.lock() : nil
    let database = try shared ?? MirrorDatabase(url: configuration.database)
    do {
      let ledger = try await database.pool.run { try MirrorLedger(configuration.name, $0) }
      guard let ledger else {
        throw MirrorFault(
          description: "the database has no mirror \(configuration.name); "
            + "make it with the command that was cut short")
      }
      let replica = try await Replica.open(
        folder.replica, server: configuration.server, space: configuration.space)
      return Mirror(
        configuration, folder, replica, database, ownsDatabase: shared == nil, ledger, lock, log)
    } catch {
      if shared == nil { await database.close() }
      throw error
    }
  }

  package func close() async {
    await replica.close()
    if ownsDatabase { await database.close() }
  }

  // MARK: Running

  /// Carries rows both ways until the task is cancelled. If one side is unreachable, it waits for it.
  package func run() async throws {
    let payload = "\(ledger.number)"
    let (wakes, wake) = try database.wakes(of: payload)
    defer { database.endWakes(of: payload) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { [self] in
        try await replica.watch(onEvent: { event in
          if case .synced = event { wake.yield() }
        })
      }
      group.addTask { [self] in try await work(wakes, wake) }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  private func work(
    _ wakes: AsyncStream<Void>, _ wake: AsyncStream<Void>.Continuation
  ) async throws {
    var state = RunState()
    var pause = Duration.milliseconds(250)
    wake.yield()
    for await _ in wakes {
      do {
        try await round(&state)
        pause = .milliseconds(250)
      } catch {
        if Task.isCancelled { break }
        log("error", "\(error)")
        // The database may be another one now: one that was restored.
        state = RunState()
        try await Task.sleep(for: pause)
        pause = min(pause * 2, .seconds(10))
        wake.yield()
      }
    }
    try Task.checkCancellation()
  }

  private struct RunState {
    var schema: Int64?
    var file: MirrorFile?
    var isAdopting = false
    /// Whether rows that the space lacks are to be tried again.
    var retries = true
  }

  /// Carries all that there is: first the writes of programs, then the rows of the replica.
  package func runOnce() async throws {
    var state = RunState()
    _ = try await replica.sync()
    try await round(&state)
  }

  private func round(_ state: inout RunState) async throws {
    var file = try await prepared(&state)
    if state.isAdopting {
      try await MirrorUpload(parts: parts(file)).run { [log] in log("adopting", $0.shown) }
      state = RunState()
      file = try await prepared(&state)
    }
    for attempt in 0..<5 {
      if try await MirrorIntake(parts: parts(file)).takeAll() { state.retries = true }
      if state.retries, !configuration.adoptions.isEmpty {
        state.retries = try await !MirrorUpload(parts: parts(file)).retry()
      }
      do {
        let result = try await MirrorOutput(parts: parts(file)).bring()
        if result == .nothing { return }
        // A row that has come may be needed by others.
        state.retries = true
        if result == .brought, attempt > 0 || configuration.adoptions.isEmpty { return }
      } catch is WrittenMeanwhile {
        continue
      }
    }
    // Programs write to the same rows all the time: the next round goes on.
    throw MirrorFault(description: "programs keep writing to rows that have changed in the space")
  }

  /// Uploads the rows of adopted tables until all are in the space or noted, in this process.
  ///
  /// - Parameter onProgress: gets the progress of each table after each slice.
  package func adoptRows(
    _ onProgress: @escaping @Sendable ([AdoptionProgress]) -> Void
  ) async throws {
    var state = RunState()
    let file = try await prepared(&state)
    if state.isAdopting { try await MirrorUpload(parts: parts(file)).run(onProgress) }
    // The triggers become the ordinary ones.
    state = RunState()
    _ = try await prepared(&state)
  }

  // MARK: Parts

  private func parts(_ file: MirrorFile) -> MirrorParts {
    let sql = file.plan.tables.map {
      MirrorSQL(table: $0, schema: configuration.schema, mirror: ledger.number)
    }
    return MirrorParts(
      file: file, path: folder.replica, sql: sql, replica: replica, pool: pool, ledger: ledger,
      log: log)
  }

  // MARK: Preparing

  /// Returns the mirror's file for the present schema of the space.
  private func prepared(_ state: inout RunState) async throws -> MirrorFile {
    if let file = state.file, state.schema == (try await replica.pulledSchema()).version {
      return file
    }
    do {
      _ = try await replica.sync()
    } catch {
      // Offline: the tables are as they were.
      guard try await replica.status().cursor != nil else { throw error }
      log("offline", "\(error)")
    }
    for fault in try await replica.trackAll().faults {
      log("table", "\(fault.table): \(fault.reason)")
    }
    let schema = try await replica.pulledSchema()
    let here = Set(try await replica.status().tables)
    let plan = try configuration.plan(schema, here: here)
    for reason in plan.omitted { log("omitted", reason) }
    let file = MirrorFile(plan: plan)
    let (ledger, configuration) = (ledger, configuration)
    let (identifier, ended) = try await replica.write { database in
      try file.addColumns(database)
      try file.prepare(database)
      return (try file.identifier(database), try file.ended(database))
    }
    let (turn, isAdopting) = try await pool.run { connection in
      try connection.transaction { connection in
        try MirrorTables(connection: connection, configuration: configuration)
          .make(plan, ledger.number)
        let turn = try connection.query(
          .once("SELECT turn, file FROM ferry_mirror.mirrors WHERE number = $1"),
          [.int8(ledger.number)]
        ).first.map { (try $0.int8(0), try $0.text(1)) }
        return (turn, try ledger.isAdopting(connection))
      }
    }
    // Tables that another file filled, or that were restored from a backup, may lack anything.
    // As long as rows are adopted, the space may lack them, and no row is brought.
    if !isAdopting, let (turn, former) = turn, !former.isEmpty,
      former != identifier || turn < ended
    {
      log("compare", "the tables were filled from another file, or were restored")
      _ = try await MirrorComparison(parts: parts(file)).compare(repairing: .tables)
    }
    try await pool.run { connection in
      _ = try connection.query(
        .once(
          "UPDATE ferry_mirror.mirrors SET file = $2, turn = greatest(turn, $3) WHERE number = $1"),
        [.int8(ledger.number), .text(identifier), .int8(ended)])
    }
    (state.file, state.schema, state.isAdopting) = (file, schema.version, isAdopting)
    return file
  }

  // MARK: Looking

  /// How far a mirror is.
  package struct Status: Sendable, Equatable {
    package var space: String
    /// The sequence of the last change of the space that the tables have.
    package var applied: Int64
    /// The newest change that the server has announced.
    package var head: Int64
    /// Writes of programs that the space does not have.
    package var captured: Int64
    package var deferred: [DeferredRow]
    /// Adopted tables.
    package var adopted: [AdoptionProgress]
    /// Rows of adopted tables that the space does not have, and that stay as they are.
    package var unsent: [DeferredRow]
    /// The number of all such rows; ``unsent`` has the first thousand.
    package var unsentCount: Int64
  }

  package func status() async throws -> Status {
    let (ledger, head) = (ledger, try await replica.status().head)
    let space = configuration.space
    return try await pool.run { connection in
      let row = try connection.query(
        .once(
          """
          SELECT applied, (SELECT count(*) FROM ferry_mirror.captured WHERE mirror = $1)
          FROM ferry_mirror.mirrors WHERE number = $1
          """), [.int8(ledger.number)]
      ).first
      let unsent = try ledger.unsent(connection)
      return Status(
        space: space, applied: try row?.int8(0) ?? 0, head: head,
        captured: try row?.int8(1) ?? 0, deferred: try ledger.deferred(connection),
        adopted: try ledger.adopted(connection), unsent: unsent.rows, unsentCount: unsent.count)
    }
  }

  // MARK: Comparing

  /// The side that is right about rows that differ.
  package enum Side: String, Sendable, CaseIterable {
    /// The tables get the space's rows.
    case tables
    /// The space gets the tables' rows, as writes of now.
    case space
  }

  /// A row that the space and its table hold in different forms.
  package struct Difference: Sendable, Equatable {
    package var table: Name
    package var key: [String]
    package var isInTable: Bool
    package var isInSpace: Bool
  }

  /// Compares all rows with the space's, once nothing is on its way.
  package func verify(repairing side: Side? = nil) async throws -> [Difference] {
    var state = RunState()
    _ = try await replica.sync()
    try await round(&state)
    guard let file = state.file else { return [] }
    let found = try await MirrorComparison(parts: parts(file)).compare(repairing: side)
    if side != nil { try await round(&state) }
    return found
  }
}
