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
  private let pool: PostgresPool
  private let ledger: MirrorLedger
  /// An event in one word, and its description.
  package typealias Log = @Sendable (_ event: String, _ detail: String) -> Void
  private let log: Log
  /// Held as long as this value lives.
  private let lock: MirrorLock?

  private init(
    _ configuration: MirrorConfiguration, _ folder: MirrorFolder, _ replica: Replica,
    _ pool: PostgresPool, _ ledger: MirrorLedger, _ lock: MirrorLock?, _ log: @escaping Log
  ) {
    self.lock = lock
    (self.configuration, self.folder, self.replica) = (configuration, folder, replica)
    (self.pool, self.ledger, self.log) = (pool, ledger, log)
  }

  // MARK: Making and opening

  /// Creates a mirror: its folder, its tables in PostgreSQL, and its entry in the ledger there.
  ///
  /// - Throws: ``MirrorFault`` if the space defines no table, or if a table in PostgreSQL has rows;
  ///   then nothing has changed.
  package static func add(
    _ configuration: MirrorConfiguration, in folder: MirrorFolder, token: String?
  ) async throws -> MirrorPlan {
    guard !folder.exists else {
      throw MirrorFault(description: "there is a mirror \(configuration.name) in \(folder.path)")
    }
    try folder.make()
    do {
      let replica = try await Replica.open(folder.replica)
      let plan: MirrorPlan
      do {
        try await replica.connect(
          to: configuration.server, space: configuration.space, token: token)
        plan = try configuration.plan(try await replica.schema())
        await replica.close()
      } catch {
        await replica.close()
        throw error
      }
      guard !plan.tables.isEmpty else {
        throw MirrorFault(
          description: "the schema of space \(configuration.space) defines no table that can be "
            + "mirrored" + (plan.omitted.first.map { ": \($0)" } ?? ""))
      }
      let pool = try PostgresPool(url: configuration.database, connections: 1)
      try await pool.run { connection in
        try connection.transaction { connection in
          let number = try enter(configuration, connection)
          try make(plan, number, configuration.schema, connection, mustBeEmpty: true)
        }
      }
      await pool.close()
      try folder.save(configuration)
      return plan
    } catch {
      try? folder.remove()
      throw error
    }
  }

  private static func enter(
    _ configuration: MirrorConfiguration, _ connection: PostgresConnection
  ) throws -> Int64 {
    // Two that begin at once would both create the schema.
    try connection.execute("SELECT pg_advisory_xact_lock(7310593)")
    try connection.execute(MirrorLedger.tables)
    let made = try connection.query(
      .once(
        """
        INSERT INTO ferry_mirror.mirrors(name, space, schema) VALUES ($1, $2, $3)
        ON CONFLICT (name) DO NOTHING RETURNING number
        """),
      [.text(configuration.name), .text(configuration.space), .text(configuration.schema)])
    guard let number = try made.first?.int8(0) else {
      throw MirrorFault(
        description: "the database has a mirror \(configuration.name) already; "
          + "choose another name, or remove that one")
    }
    return number
  }

  /// Makes the tables as they should be, unless they are.
  private static func make(
    _ plan: MirrorPlan, _ number: Int64, _ schema: String, _ connection: PostgresConnection,
    mustBeEmpty: Bool = false
  ) throws {
    let sql = plan.tables.map { MirrorSQL(table: $0, schema: schema, mirror: number) }
    let statements =
      ["CREATE SCHEMA IF NOT EXISTS \(MirrorSQL.quoted(schema))"]
      + sql.flatMap(\.definition) + sql.flatMap(\.references) + sql.flatMap(\.capture)
    let layout = statements.joined(separator: ";\n")
    let known = try connection.query(
      .once("SELECT FROM ferry_mirror.mirrors WHERE number = $1 AND layout = $2"),
      [.int8(number), .text(layout)])
    guard known.isEmpty else { return }
    // Programs wait behind a statement that waits for a table.
    try connection.execute("SET LOCAL lock_timeout = '2s'")
    for statement in statements { try connection.execute(statement) }
    if mustBeEmpty {
      for sql in sql
      where try !connection.query(.once("SELECT FROM \(sql.target) LIMIT 1")).isEmpty {
        throw MirrorFault(
          description: "table \(schema).\(sql.table.name) has rows; a mirror begins with tables "
            + "that are empty or absent")
      }
    }
    _ = try connection.query(
      .once("UPDATE ferry_mirror.mirrors SET layout = $2 WHERE number = $1"),
      [.int8(number), .text(layout)])
  }

  /// Opens a mirror that was added.
  ///
  /// - Parameter isAlone: whether no other process may carry rows meanwhile; only a look needs none.
  package static func open(
    _ folder: MirrorFolder, isAlone: Bool = true, log: @escaping Log = { _, _ in }
  ) async throws -> Mirror {
    let configuration = try folder.configuration()
    let lock = isAlone ? try folder.lock() : nil
    let pool = try PostgresPool(url: configuration.database, connections: 2)
    let number = try await pool.run { connection in
      try connection.query(
        .once("SELECT number FROM ferry_mirror.mirrors WHERE name = $1"),
        [.text(configuration.name)]
      ).first?.int8(0)
    }
    guard let number else {
      throw MirrorFault(description: "the database has no mirror \(configuration.name)")
    }
    let replica = try await Replica.open(
      folder.replica, server: configuration.server, space: configuration.space)
    return Mirror(configuration, folder, replica, pool, MirrorLedger(number: number), lock, log)
  }

  package func close() async {
    await replica.close()
    await pool.close()
  }

  /// Removes the mirror: its triggers, its entry and its folder. The tables stay, with their rows.
  package func remove() async throws {
    let ledger = ledger
    try await pool.run { connection in
      try connection.transaction { connection in
        try connection.execute(ledger.releaseAll)
        for table in ["captured", "deferred"] {
          try connection.execute(
            "DELETE FROM ferry_mirror.\(table) WHERE mirror = \(ledger.number)")
        }
        try connection.execute("DELETE FROM ferry_mirror.mirrors WHERE number = \(ledger.number)")
      }
    }
    await close()
    try folder.remove()
  }

  // MARK: Running

  /// Carries rows both ways until the task is cancelled. If one side is unreachable, it waits for it.
  package func run() async throws {
    let (wakes, wake) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let number = "\(ledger.number)"
    let listener = try PostgresListener(
      url: configuration.database, channels: [MirrorLedger.channel]
    ) { event in
      switch event {
      case .listening: wake.yield()
      case .notification(_, let payload): if payload == number { wake.yield() }
      case .disconnected: break
      }
    }
    do {
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
    } catch {
      await listener.close()
      throw error
    }
    await listener.close()
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
  }

  /// Carries all that there is: first the writes of programs, then the rows of the replica.
  package func runOnce() async throws {
    var state = RunState()
    _ = try await replica.sync()
    try await round(&state)
  }

  private func round(_ state: inout RunState) async throws {
    let file = try await prepared(&state)
    for _ in 0..<5 {
      while try await takeWrites(file) {}
      do {
        return try await bring(file)
      } catch is WrittenMeanwhile {
        continue
      }
    }
    // Programs write to the same rows all the time: the next round goes on.
    throw MirrorFault(description: "programs keep writing to rows that have changed in the space")
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
    let (ledger, name) = (ledger, configuration.schema)
    let (identifier, ended) = try await replica.write { database in
      try file.addColumns(database)
      try file.prepare(database)
      return (try file.identifier(database), try file.ended(database))
    }
    let turn = try await pool.run { connection in
      try connection.transaction { connection in
        try Self.make(plan, ledger.number, name, connection)
        return try connection.query(
          .once("SELECT turn, file FROM ferry_mirror.mirrors WHERE number = $1"),
          [.int8(ledger.number)]
        ).first.map { (try $0.int8(0), try $0.text(1)) }
      }
    }
    // Tables that another file filled, or that were restored from a backup, may lack anything.
    if let (turn, former) = turn, !former.isEmpty, former != identifier || turn < ended {
      log("compare", "the tables were filled from another file, or were restored")
      _ = try await compare(file, repairing: .tables)
    }
    try await pool.run { connection in
      _ = try connection.query(
        .once(
          "UPDATE ferry_mirror.mirrors SET file = $2, turn = greatest(turn, $3) WHERE number = $1"),
        [.int8(ledger.number), .text(identifier), .int8(ended)])
    }
    (state.file, state.schema) = (file, schema.version)
    return file
  }

  // MARK: In

  /// Takes some captured writes into the space. Returns whether there were any.
  private func takeWrites(_ file: MirrorFile) async throws -> Bool {
    let ledger = ledger
    try await settleRead(file)
    let captured = try await pool.run { try ledger.captured($0) }
    guard !captured.writes.isEmpty else { return false }
    for failure in try await take(captured, file) {
      let key = failure.write.key.map { $0 ?? "NULL" }.joined(separator: ", ")
      log("rejected", "\(failure.write.table) \(key): \(failure.reason)")
    }
    try await settleRead(file)
    return true
  }

  private func take(
    _ captured: CapturedWrites, _ file: MirrorFile
  ) async throws -> [FailedWrite] {
    do {
      return try await replica.write { try file.take(captured, $0) }
    } catch let error where error.isTooManyWrites {
      guard let half = captured.half else { throw error }
      return try await take(half, file)
    } catch let error as ReplicaError where error.isConstraint && !captured.isPart {
      // A foreign key fails at the end of the transaction: it does not say for which write.
      log("retry", "\(error)")
    }
    let transactions = captured.transactions
    guard transactions.count == 1 else {
      var failed: [FailedWrite] = []
      for transaction in transactions { failed += try await take(transaction, file) }
      return failed
    }
    return try await replica.write { try file.take(captured, $0, checksEach: true) }
  }

  /// Sends the writes that the file has, and makes PostgreSQL forget those that the space has.
  private func settleRead(_ file: MirrorFile) async throws {
    let read = try await replica.read { try file.read($0) }
    guard !read.isEmpty else { return }
    repeat { _ = try await replica.sync() } while try await replica.status().pending > 0
    let ledger = ledger
    try await pool.run { try ledger.remove(read, $0) }
    try await replica.write { try file.forgetRead($0) }
  }

  // MARK: Out

  /// Brings the changed rows into the tables.
  private func bring(_ file: MirrorFile) async throws {
    guard try await replica.read({ try file.hasChanges($0) }) else { return }
    let ledger = ledger
    let deferred = try await pool.run { try ledger.deferred($0) }
    let turn = try await replica.write { database in
      // Each change may be what they wait for.
      for row in deferred {
        guard let table = file.plan.table(row.table), let key = try? table.values(ofKey: row.key)
        else { continue }
        try file.note(table, key, database)
      }
      return try file.beginTurn(database)
    }
    let count: Int
    do {
      count = try await bring(file, before: turn, isCareful: false)
    } catch let error as PostgresError where error.isAboutRow {
      count = try await bring(file, before: turn, isCareful: true)
    }
    try await replica.write { try file.endTurn(turn, $0) }
    log("applied", "\(count) rows")
  }

  private func bring(
    _ file: MirrorFile, before turn: Int64, isCareful: Bool
  ) async throws -> Int {
    let (ledger, path, sql) = (ledger, folder.replica, statements(file))
    let ended = try await replica.read { try file.ended($0) }
    return try await pool.run { connection in
      let source = try SQLiteConnection(path: path, mode: .readOnly)
      // One state of the file, whatever is written to it meanwhile.
      return try source.transaction(.deferred) {
        try connection.transaction { connection in
          var step = try MirrorStep(connection, ledger, sql, isCareful: isCareful)
          let applied = try source.first("SELECT applied FROM ferry_replica") { $0.int64(0) } ?? 0
          try file.changes(before: turn, source) { try step.add($0) }
          try step.finish()
          try ledger.note(turn: turn, after: ended, applied: applied, connection)
          return step.count
        }
      }
    }
  }

  private func statements(_ file: MirrorFile) -> [MirrorSQL] {
    file.plan.tables.map {
      MirrorSQL(table: $0, schema: configuration.schema, mirror: ledger.number)
    }
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
  }

  package func status() async throws -> Status {
    let (ledger, head) = (ledger, try await replica.status().head)
    let (applied, captured, deferred) = try await pool.run { connection in
      let row = try connection.query(
        .once(
          """
          SELECT applied, (SELECT count(*) FROM ferry_mirror.captured WHERE mirror = $1)
          FROM ferry_mirror.mirrors WHERE number = $1
          """), [.int8(ledger.number)]
      ).first
      return (try row?.int8(0) ?? 0, try row?.int8(1) ?? 0, try ledger.deferred(connection))
    }
    return Status(
      space: configuration.space, applied: applied, head: head, captured: captured,
      deferred: deferred)
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
    let found = try await compare(file, repairing: side)
    if side != nil { try await round(&state) }
    return found
  }

  private func compare(
    _ file: MirrorFile, repairing side: Side?
  ) async throws -> [Difference] {
    let (path, sql) = (folder.replica, statements(file))
    var found: [Difference] = []
    for (place, sql) in sql.enumerated() {
      found += try await pool.run { connection in
        let source = try SQLiteConnection(path: path, mode: .readOnly)
        return try connection.transaction { connection in
          try connection.execute(sql.makeCopy)
          try MirrorCopy(connection, sql).fill { body in
            try file.rows(of: place, source, body)
          }
          let rows = try connection.query(
            .once(sql.differences(withDeferred: side == .tables)))
          if side == .space {
            // The trigger captures it as a write of a program.
            for row in rows { try Self.rewrite(row, sql, connection) }
          }
          return try rows.map { row in
            Difference(
              table: sql.table.name, key: try row.array(0, of: String.self).map { $0 ?? "" },
              isInTable: try row.bool(1), isInSpace: try row.bool(2))
          }
        }
      }
    }
    if side == .tables, !found.isEmpty {
      let differences = found
      try await replica.write { database in
        for difference in differences {
          guard let table = file.plan.table(difference.table.text) else { continue }
          let key = try table.values(ofKey: difference.key)
          try file.note(table, key, database)
        }
      }
    }
    return found
  }

  /// Records a row of a table as a write of now.
  private static func rewrite(
    _ row: PostgresRow, _ sql: MirrorSQL, _ connection: PostgresConnection
  ) throws {
    let key = try row.array(0, of: String.self)
    _ = try connection.query(
      .once(sql.recapture(isInTable: try row.bool(1))), [.array(PostgresArray(key))])
  }
}
