import FerryPersistence
import FerryPlatform
import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerrySyncClient
import Synchronization

/// Carries rows between a replica and tables of PostgreSQL, one round at a time. ``Mirror`` decides
/// when.
///
/// A round may fail anywhere, and be repeated.
package final class MirrorRounds: Sendable {
  /// Both sides of a mirror.
  package struct Sides: Sendable {
    package var configuration: MirrorConfiguration
    package var ledger: MirrorLedger
    package var replica: Replica
    /// Opens the replica's file for reading.
    package var openFile: @Sendable () throws -> SQLiteConnection
    package var pool: any MirrorConnections
    package var log: Mirror.Log
    /// Reads PostgreSQL's log; `nil` if triggers capture.
    var reader: LogReader?
    /// Counts of this process.
    let tally = MirrorTally()
    let owners = MirrorOwners()
    /// The numbers of records in mapped tables; `nil` if there are none.
    package var numbers: MirrorNumbers?
    /// Runs a transaction that applies captured writes to the replica.
    package var taking: @Sendable (Database, () throws -> Void) throws -> Void = { try $1() }
    /// Stores the settings after a change of the tables' definitions.
    package var save: @Sendable (MirrorConfiguration) throws -> Void = { _ in }
    /// Returns how many milliseconds ago a program has made a write.
    package var age: @Sendable (CapturedWrite) -> Int64 = { $0.age }

    package init(
      _ configuration: MirrorConfiguration, _ ledger: MirrorLedger, replica: Replica,
      pool: any MirrorConnections, log: @escaping Mirror.Log,
      openFile: @escaping @Sendable () throws -> SQLiteConnection
    ) {
      (self.configuration, self.ledger) = (configuration, ledger)
      (self.replica, self.pool, self.log, self.openFile) = (replica, pool, log, openFile)
    }
  }

  let sides: Sides
  var configuration: MirrorConfiguration { followed.withLock { $0 } ?? sides.configuration }
  var ledger: MirrorLedger { sides.ledger }
  var replica: Replica { sides.replica }
  var pool: any MirrorConnections { sides.pool }
  private var log: Mirror.Log { sides.log }

  /// The settings after a followed change of the tables; `nil` before one.
  let followed = Mutex<MirrorConfiguration?>(nil)
  /// The version of the space's schema with which changed definitions were refused.
  let refusing = Mutex<Int64?>(nil)
  /// True if the last look found a definition with which the mirror cannot go on.
  let isUnfit = Mutex(false)
  /// Held by a round, and before a pull.
  private let turn = AsyncTurn()
  /// The file for the schema of the tables; `nil` before the first round.
  let file = Mutex<MirrorFile?>(nil)
  /// True if programs' writes were taken since the last round.
  private let hasTaken = Mutex(false)
  /// The state after the last ``runOnce()``, if it succeeded.
  private let kept = Mutex(State())
  /// True if the next round prepares both sides again.
  let isChanged = Mutex(false)
  private let preparation = MirrorLatch()

  package init(_ sides: Sides) { self.sides = sides }

  /// Returns when a round knows the tables, or when the task is cancelled.
  func untilPrepared() async { await preparation.wait() }

  /// The state that a round leaves for the next one. After a failure, the next one begins from
  /// scratch.
  struct State {
    var schema: Int64?
    var file: MirrorFile?
    var isAdopting = false
    /// True if rows missing in the space are to be retried.
    var retries = true
    /// True if a program's write may let deferred rows into the tables.
    var retriesDeferred = true
    /// The schema of the last try of rows missing in the space.
    var triedSchema: Int64?
    /// The last change of the space known to PostgreSQL as contained in the tables, if no step has
    /// brought it.
    var applied: SequenceNumber?
    /// True if a table lacks a part because of the existing rows; the next round tries it once
    /// more.
    var isIncomplete = false
    /// True if the mirror has stopped itself, and both sides are about to be compared.
    var isResuming = false
  }

  /// Carries everything: first the writes of programs, then the rows of the space.
  package func runOnce() async throws {
    var state = kept.withLock { $0 }
    kept.withLock { $0 = State() }
    try await runOnce(&state)
    kept.withLock { [state] in $0 = state }
  }

  private func runOnce(_ state: inout State) async throws {
    try await releasingLog {
      try await lookingAgain(&state) { state in
        try await readWrites(try await prepared(&state))
      }
      _ = try await replica.sync()
      try await run(&state)
    }
  }

  /// Applies the available writes of programs.
  func readWrites(_ file: MirrorFile) async throws {
    var isAny = true
    // After an error, some may have been taken.
    defer { if isAny { hasTaken.withLock { $0 = true } } }
    isAny = try await MirrorIntake(parts: parts(file)).readPresent()
  }

  /// Applies the writes of programs before a pull: their programs had not seen the pulled changes,
  /// and the space's rules have to know this. Returns `true` if the pull may begin.
  func readBeforePull() async -> Bool {
    await turn.perform {
      guard let file = file.withLock({ $0 }) else { return false }
      do {
        try await readWrites(file)
        return true
      } catch {
        return false
      }
    }
  }

  /// Steps of a round, at most.
  private static let stepsMax = 5

  /// Carries the writes of programs, and then the rows of the replica. Returns whether there is
  /// more to carry: programs may write to the same rows all the time.
  @discardableResult
  func run(_ state: inout State) async throws -> Bool {
    try await turn.perform {
      try await releasingLog {
        try await lookingAgain(&state) { try await runInTurn(&$0) }
      }
    }
  }

  private func runInTurn(_ state: inout State) async throws -> Bool {
    var file = try await prepared(&state)
    if state.isAdopting {
      try await MirrorUpload(parts: parts(file)).run { [log] in log("adopting", $0.shown) }
      state = State()
      file = try await prepared(&state)
    }
    for step in 0..<Self.stepsMax {
      if try await allowsRetry(file, &state) { state.retries = true }
      try await readWrites(file)
      if hasTaken.withLock({ hasTaken in
        defer { hasTaken = false }
        return hasTaken
      }) {
        (state.retries, state.retriesDeferred) = (true, true)
      }
      if state.retries {
        // It takes programs' writes, too.
        state.retriesDeferred = true
        state.retries = try await !MirrorUpload(parts: parts(file)).retry()
      }
      do {
        let result = try await MirrorOutput(parts: parts(file))
          .write(retriesDeferred: state.retriesDeferred)
        state.retriesDeferred = false
        if result == .nothing {
          try await recordApplied(file, &state)
          return false
        }
        // Others may need a newly arrived row.
        state.retries = true
        guard result == .brought else { continue }
        if step > 0 { return false }
        guard try await hasUnsent() else { return false }
      } catch is WrittenMeanwhile {
        continue
      }
    }
    return true
  }

  /// Records the progress of the tables after changes of the programs' own: no step has brought
  /// them.
  private func recordApplied(_ file: MirrorFile, _ state: inout State) async throws {
    guard let applied = try await replica.status().cursor?.applied, applied != state.applied
    else { return }
    let waiting = try await parts(file).unfilledViews()
    let (hasChanges, ended) = try await replica.read { database in
      (try file.hasChanges(except: waiting, database), try file.ended(database))
    }
    if hasChanges { return }
    let ledger = ledger
    try await pool.run { try ledger.store(applied: applied, after: ended, $0) }
    state.applied = applied
  }

  // MARK: Parts

  func parts(_ file: MirrorFile) -> MirrorParts {
    let sql = file.plan.tables.map {
      MirrorSQL(
        table: $0, schema: configuration.schema, mirror: ledger.number,
        capture: sides.reader == nil ? .triggers : .log)
    }
    return MirrorParts(file: file, sides: sides, sql: sql)
  }

  // MARK: Preparing

  /// The file of the tables while their rows are adopted. No comparison is possible meanwhile,
  /// whatever happens to the real file, so all rows are compared afterwards.
  private static let adoptingFile = "adopting"

  /// Returns the mirror's file for the present schema of the space.
  func prepared(_ state: inout State) async throws -> MirrorFile {
    let limits = try await otherLimits()
    let isChanged = endChange()
    if let file = state.file, !isChanged, !state.isIncomplete, limits.isEmpty,
      state.schema == (try await presentSchema()).version,
      try await !lacksLogged(), try await !hasOtherPartitions(), try await !hasOtherDefinitions()
    {
      return file
    }
    try await replaceDroppedPublication()
    var changed = state.isResuming ? [] : try await adapt()
    // A followed definition has the present limits.
    if !limits.isEmpty { try adapt(to: try await otherLimits()) }
    if !state.isResuming { try await checkStops(except: changed.map(\.name)) }
    let isLastTry = state.isIncomplete
    // Later, a pull comes after the writes that programs have made without it.
    if try await replica.status().cursor == nil { _ = try await replica.sync() }
    try await trackAdopted()
    for fault in try await replica.trackAll().faults {
      log("table", "\(fault.table): \(fault.reason)")
    }
    let schema = try await presentSchema()
    let plan = try await plan(schema)
    for reason in plan.omitted { log("omitted", reason) }
    let file = MirrorFile(plan: plan)
    let (ledger, configuration) = (ledger, configuration)
    let returning = try await returning(changed)
    for place in changed.indices where returning.contains(changed[place].name) {
      changed[place].compares = true
    }
    let (identifier, ended, begun) = try await replica.write { database in
      try file.renameColumns(configuration.renamed, database)
      try file.addColumns(database)
      try file.prepare(database)
      return (
        try file.identifier(database), try file.ended(database), try file.turn(database)
      )
    }
    let (isResuming, tables) = (state.isResuming, changed)
    let (turn, isAdopting, absent) = try await pool.runLocking { connection in
      try connection.transaction { connection in
        // Open connections of programs forget the plans of a recreated function.
        if isResuming || !tables.isEmpty { try ledger.forgetLayout(connection) }
        let absent = try MirrorTables(connection: connection, configuration: configuration)
          .make(plan, ledger.number, following: tables)
        let turn = try connection.query(
          .once("SELECT turn, file FROM ferry_mirror.mirrors WHERE number = $1"),
          [.int8(ledger.number)]
        ).first.map { (try $0.int8(0), try $0.text(1)) }
        return (turn, try ledger.isAdopting(connection), absent)
      }
    }
    for reason in absent { log("omitted", reason) }
    let isLacking = try await readLog(plan, isAdopting: isAdopting)
    try await compareFormer(file, isResuming: isResuming)
    if !isAdopting, !isResuming { try await comparePartitions(file) }
    if let (turn, former) = turn, !former.isEmpty {
      let isSetBack = former == identifier && turn > begun
      // Programs have seen what the file has lost, perhaps with the machine's power.
      if isSetBack { _ = try await replica.sync() }
      // Tables filled by another file, or restored from a backup, may lack anything. As long as
      // rows are adopted, the space may lack them, and no row is brought.
      if !isAdopting, !isResuming, isSetBack || former != identifier || turn < ended {
        log(
          "compare",
          former == Self.adoptingFile
            ? "the rows of the tables are adopted"
            : "the tables were filled from another file, or one side was restored")
        try await compareRows(file, all: true)
      }
      if isSetBack { try await replica.write { try file.skip(to: turn, $0) } }
    }
    if isLacking, !isAdopting, !isResuming { try await compareLogged(file) }
    if !isAdopting, !isResuming { try await compareRows(file, all: false) }
    let present = try await replica.read { try file.turn($0) }
    try await pool.run { connection in
      _ = try connection.query(
        .once(
          """
          UPDATE ferry_mirror.mirrors SET file = $2, turn = greatest(turn, $3),
            version = CASE version WHEN 0 THEN $4 ELSE version END WHERE number = $1
          """),
        [
          .int8(ledger.number), .text(isAdopting ? Self.adoptingFile : identifier), .int8(present),
          .int8(schema.version),
        ])
    }
    self.file.withLock { $0 = file }
    preparation.open()
    (state.file, state.schema, state.isAdopting) = (file, schema.version, isAdopting)
    state.isIncomplete = !absent.isEmpty && !isLastTry
    return file
  }

  /// Returns the plan without tables missing in the replica, and without those of others.
  private func plan(_ schema: SpaceSchema) async throws -> MirrorPlan {
    let here = Set(try await replica.status().tables)
    let (configuration, number) = (configuration, ledger.number)
    let plan = try configuration.plan(schema, here: here)
    let foreign = try await pool.run { connection in
      try MirrorTables(connection: connection, configuration: configuration)
        .foreign(in: plan, number)
    }
    if foreign.isEmpty { return plan }
    for table in foreign { log("omitted", table.description) }
    return try configuration.plan(schema, here: here.subtracting(foreign.map(\.name)))
  }

  // MARK: Looking

  package func status() async throws -> Mirror.Status {
    let look = look
    return try await pool.run {
      try look.status(limit: Int(MirrorLedger.deferredMax), $0)
    }
  }

  var look: MirrorLook {
    MirrorLook(configuration: configuration, ledger: ledger) { [sides] in try sides.openFile() }
  }

  // MARK: Comparing

  /// Compares all rows with the space's, after all writes in progress. A repair also ends a stop.
  ///
  /// - Throws: ``MirrorStopped`` without a repair if writes of programs are not recorded.
  package func verify(repairing side: Mirror.Side? = nil) async throws -> [Mirror.Difference] {
    var state = State()
    if side == .space {
      let ledger = ledger
      try await pool.run { try ledger.unsent.allowRetry($0) }
    }
    do {
      try await runOnce(&state)
    } catch let stopped as MirrorStopped {
      guard let side else { throw stopped }
      return try await resume(repairing: side, after: stopped)
    }
    guard let file = state.file else { return [] }
    let found = try await releasingLog {
      try await MirrorComparison(parts: parts(file)).compare(repairing: side)
    }
    if side != nil { try await run(&state) }
    return found
  }

  /// Records the writes of programs again, and compares all rows: some writes were not recorded.
  private func resume(
    repairing side: Mirror.Side, after stopped: MirrorStopped
  ) async throws -> [Mirror.Difference] {
    // The former log has the writes that stopped the mirror.
    try await releaseLog()
    return try await releasingLog {
      var state = State()
      state.isResuming = true
      do {
        let file = try await prepared(&state)
        try await catchUpStopped()
        let log = try await presentLog()
        let found = try await MirrorComparison(parts: parts(file))
          .compare(repairing: side, withCaptured: true)
        try await resume(log)
        try await run(&state)
        return found
      } catch let error as PostgresError where error.isAboutDefinition || error.isAboutRights {
        throw MirrorStopped(
          name: stopped.name, stops: stopped.stops + [MirrorStop(table: "", reason: error.message)])
      }
    }
  }
}
