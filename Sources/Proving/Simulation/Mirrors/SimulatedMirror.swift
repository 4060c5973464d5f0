import FerryConformance
import FerryMirror
import FerryPersistence
import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerrySyncClient

/// A mirror: a device whose rows are in tables of a real PostgreSQL as well, where a program writes
/// to them. Virtual time stops while PostgreSQL works.
///
/// The device's process carries the rows with the product's rounds. The program goes on while this
/// process is down. Connections break before a step and after its commit, and the process dies
/// there.
///
/// An adopting mirror begins with a company's tables, with programs' writes from before the mirror.
///
/// Real are ``MirrorRounds`` with everything below it, the SQL of its steps and triggers, and
/// PostgreSQL with the company's conditions and triggers. Simulated are the mirror's process, file,
/// clock and network, the breaks of connections, and the programs. ``Mirror`` with its threads and
/// ``LogReader`` do not run here: the log is read in real time.
// SAFETY: touched on the scheduler's thread only.
final class SimulatedMirror: @unchecked Sendable {
  let name: String
  /// The settings; those of adopted tables come with the adoption.
  var configuration: MirrorConfiguration
  /// True if the tables are a company's.
  let adopts: Bool
  /// True if the company's tables refuse and change some rows.
  let hasRules: Bool
  /// True if the space's rules give way to programs' writes, as they do to any adopting mirror.
  var isAuthority: Bool { hasRules || hasOrders }
  /// True if sequences of the company number some tables.
  let hasOrders: Bool
  /// Lets these sequences count the rows of the mirror's file; `nil` if there are none.
  private(set) var numbers: MirrorNumbers?
  /// The word of the database, in place of one by chance.
  private static let origin = "00000000-0000-4000-8000-000000000000"
  let scheduler: Scheduler
  let trace: Trace
  let dice: FaultDice
  let site: FaultDice.Site
  /// Kills the device's process.
  let kill: () -> Void
  var connection: PostgresConnection?
  /// `nil` before the mirror is made.
  var plan: MirrorPlan?
  /// The tables in PostgreSQL; none before they are made.
  var tables: [Name] = []
  var made: Set<RecordKey> = []
  var removed: Set<RecordKey> = []
  var taken: Set<RecordKey> = []
  var rejected: Set<RecordKey> = []
  var balances: [RecordKey: Int64] = [:]
  /// The tokens of numbered rows made by programs, and not deleted by them.
  var tokens: Set<String> = []
  /// Transactions of a thousand that hold a row for seconds.
  let heldRows: Int
  /// The open one of them.
  var longTransaction: LongTransaction?
  /// Returns whether the company's developers may change the tables: the space defines them as they are
  /// at the adoptions.
  var mayRedefine: () -> Bool = { true }
  /// When programs wrote, by their transactions: virtual microseconds.
  var times: [String: Int64] = [:]

  init(
    _ name: String, space: SpaceName, database: String, adopts: Bool, hasRules: Bool,
    hasOrders: Bool, heldRows: Int,
    scheduler: Scheduler, trace: Trace, dice: FaultDice, kill: @escaping () -> Void
  ) {
    (self.name, self.scheduler, self.trace, self.dice) = (name, scheduler, trace, dice)
    (self.adopts, self.hasRules, self.kill) = (adopts, adopts && hasRules, kill)
    (self.hasOrders, self.heldRows) = (adopts && hasOrders, heldRows)
    site = dice.site("\(name)-tables")
    configuration = MirrorConfiguration(
      name: name, server: "http://ferry.test", space: space.value, database: database, schema: name)
    guard self.hasOrders else { return }
    var numbered = configuration
    for table in Workload.numbered { numbered.adoptions[table.text] = MirrorAdoption() }
    numbers = MirrorNumbers(numbered, origin: Self.origin) { [unowned self] in
      try atDatabase($0)
    }
  }

  /// The tables that the mirror adopts.
  var companyTables: [String] {
    Workload.mirroredTables + (hasOrders ? Workload.numbered.map(\.text) : [])
  }

  // MARK: Carrying

  /// Returns the rounds of a process with the space's schema.
  ///
  /// - Parameters:
  ///   - processor: does the process's work, as long as it lives.
  ///   - observe: shows the device's file to the oracles.
  ///   - taking: runs a transaction with a program's writes.
  func rounds(
    of replica: Replica, processor: Processor,
    openFile: @escaping @Sendable () throws -> SQLiteConnection,
    observe: @escaping @Sendable () -> Void,
    taking: @escaping @Sendable (Database, () throws -> Void) throws -> Void
  ) async throws -> MirrorRounds {
    // Sequences number the rows of the first pull.
    let schema = try await hasOrders ? replica.schema() : replica.pulledSchema()
    let pool = SimulatedConnections(mirror: self, processor: processor)
    if adopts {
      try makeCompany()
      if configuration.adoptions.isEmpty { configuration = try await adoption(schema, pool) }
    }
    let plan = try configuration.plan(schema)
    let ledger = try await enter(plan, pool)
    self.plan = plan
    tables = plan.tables.map(\.name)
    var sides = MirrorRounds.Sides(
      configuration, ledger, replica: replica, pool: pool,
      log: { [self] event, detail in
        log(event, detail)
        // Then it retries or discards operations refused by the server.
        if ["applied", "adopting", "retry"].contains(event) { observe() }
      }, openFile: openFile)
    (sides.taking, sides.numbers) = (taking, numbers)
    sides.save = { [self] in configuration = $0 }
    sides.age = { [self] write in
      times[write.transaction].map { (scheduler.now - $0) / 1_000 } ?? 0
    }
    return MirrorRounds(sides)
  }

  private func enter(
    _ plan: MirrorPlan, _ pool: SimulatedConnections
  ) async throws -> MirrorLedger {
    guard adopts else {
      return try await MirrorLedger.enter(configuration, plan, again: true, pool)
    }
    let adoption = TableAdoption(configuration)
    return try await pool.run { [configuration] connection in
      // The first process adopts. The tables may have changed since.
      if let ledger = try MirrorLedger(configuration.name, connection) { return ledger }
      let ledger = try adoption.install(plan, again: true, connection)
      try connection.execute(
        single: "UPDATE ferry_mirror.origin SET word = \(quoted(literal: Self.origin))")
      return ledger
    }
  }

  /// Returns the settings for the company's tables, which the space has to define as they are.
  private func adoption(
    _ schema: SpaceSchema, _ pool: SimulatedConnections
  ) async throws -> MirrorConfiguration {
    var asked = configuration
    asked.tables = companyTables
    let adoption = TableAdoption(asked)
    let plan = try await pool.run { try adoption.plan($0) }
    let lacking = try plan.added(to: schema)
    precondition(lacking == nil, "the space lacks a table of the company")
    return adoption.configuration(for: plan)
  }

  /// Makes the company's tables, if they are not there.
  private func makeCompany() throws {
    guard adopts, tables.isEmpty else { return }
    try connected().transaction { connection in
      try connection.execute("CREATE SCHEMA \(quoted(Name(name)))")
      try connection.execute("SET LOCAL search_path = \(quoted(Name(name)))")
      for statement in Workload.companyTables(
        hasRules: hasRules, hasOrders: hasOrders)
      {
        try connection.execute(statement)
      }
    }
    tables = companyTables.map { Name($0) }
  }

  /// Records operations of programs' writes in the replica.
  func took(_ operations: [LocalOperation]) { taken.formUnion(operations.map(\.key)) }

  private func log(_ event: String, _ detail: String) {
    trace.record(.mirrored, name, "\(event): \(detail)")
    guard event == "rejected", let end = detail.firstIndex(of: ":") else { return }
    let words = detail[..<end].split(separator: " ", maxSplits: 1)
    guard words.count == 2 else { return }
    rejected.insert(RecordKey(table: Name(String(words[0])), record: Name(String(words[1]))))
  }

  fileprivate func atDatabase<Value>(
    _ body: (PostgresConnection) throws -> Value
  ) throws -> Value {
    try fail(mayHaveCommitted: false)
    let connection = try connected()
    let value = try body(connection)
    try fail(mayHaveCommitted: true)
    return value
  }

  private func fail(mayHaveCommitted: Bool) throws {
    if dice.roll(.crash, at: site) {
      trace.record(.crashed, name, "at a step of its tables")
      // The dead process gets no answer.
      scheduler.after(0, kill)
      throw Processor.Died()
    }
    guard dice.roll(.reset, at: site) else { return }
    trace.record(.dropped, name, mayHaveCommitted ? "its answer from the tables" : "its tables")
    var error = PostgresError(.connectionLost, "the connection broke")
    error.mayHaveCommitted = mayHaveCommitted
    throw error
  }

  func connected() throws -> PostgresConnection {
    if let connection { return connection }
    // The product waits for rows in proportion to this.
    let settings: PostgresSettings =
      heldRows > 0 ? [("jit", "off"), ("deadlock_timeout", "20ms")] : .mirrors
    let new = try PostgresConnection(url: configuration.database, settings: settings)
    connection = new
    return new
  }

  func close() { (connection, longTransaction) = (nil, nil) }

  // MARK: The program

  /// Makes a program's transaction, if there are tables.
  func perform(_ planned: PlannedAction) {
    do {
      try makeCompany()
      if tables.isEmpty { return }
      if try holdsRow(planned) { return }
      let connection = try connected()
      let written = try connection.transaction { connection in
        try connection.execute("SET LOCAL search_path = \(quoted(Name(name)))")
        // The holder of a row goes on only after this.
        if longTransaction != nil { try connection.execute("SET LOCAL lock_timeout = '1ms'") }
        let statements = try Workload.program(
          for: planned, name: name, hasOrders: hasOrders
        ) { sql in
          let rows = try connection.query(.once(sql))
          return try rows.map { try Self.values($0, rows.columnCount) }
        }
        let before = try CompanySnapshot(connection, of: tables, name: name)
        for statement in hasRules && mayRedefine() ? CompanyRules.redefinitions(for: planned) : [] {
          try connection.execute(statement)
        }
        for statement in statements { try connection.execute(statement) }
        let transaction = try connection.query(.once("SELECT pg_current_xact_id()::text"))
        let after = try CompanySnapshot(connection, of: tables, name: name)
        return (statements, before, after, try transaction.first?.text(0))
      }
      let (statements, before, after, transaction) = written
      if statements.isEmpty { return }
      if let transaction { times[transaction] = scheduler.now }
      for (account, amount) in after.accounts {
        balances[account, default: 0] += amount - before.accounts[account, default: 0]
      }
      let new = after.records.subtracting(before.records)
      // The insert and the delete of a record may cancel each other out.
      made.formUnion(new)
      made.subtract(before.records.subtracting(after.records))
      removed.formUnion(before.records.subtracting(after.records))
      tokens.formUnion(after.tokens.subtracting(before.tokens))
      tokens.subtract(before.tokens.subtracting(after.tokens))
      trace.record(.wrote, name, "a program: \(planned.action.rawValue), \(new.count) new records")
    } catch {
      // As for any program: the transaction is rolled back.
      trace.record(.mirrored, name, "a program failed: \(error)")
    }
  }

  /// Begins a long transaction now and then, if the mirror has begun its work. Returns `true` if one
  /// has begun.
  private func holdsRow(_ planned: PlannedAction) throws -> Bool {
    var random = SeededRandom(planned.seed, "held row")
    guard random.chance(heldRows, in: 1_000), plan != nil, longTransaction == nil,
      try count("adopted", where: "NOT t.done", connected()) == 0,
      let long = try LongTransaction(configuration.database, schema: name, &random)
    else { return false }
    (longTransaction, times[long.transaction]) = (long, scheduler.now)
    trace.record(.wrote, name, "a program: holds notes/\(long.record)")
    let commits = random.chance(3, in: 4)
    scheduler.after(500_000 + Int64(random.below(4_000_000))) { [weak self] in
      self?.endLongTransaction(commits: commits)
    }
    return true
  }

  private func endLongTransaction(commits: Bool) {
    guard let long = longTransaction else { return }
    longTransaction = nil
    do {
      try long.end(commits: commits)
      trace.record(
        .wrote, name, "a program: \(commits ? "commits" : "rolls back") notes/\(long.record)")
    } catch {
      trace.record(.mirrored, name, "a program failed: \(error)")
    }
  }

  /// Returns the values of a row of texts and integers.
  private static func values(_ row: PostgresRow, _ count: Int) throws -> [Value] {
    try (0..<count).map { column in
      if row.isNull(column) { return .null }
      if let number = try? row.int8(column) { return .integer(number) }
      return .text(try row.text(column))
    }
  }
}

/// A process's connections to the mirror's database.
private struct SimulatedConnections: MirrorConnections {
  let mirror: SimulatedMirror
  let processor: Processor

  func run<Value: Sendable>(
    _ body: @escaping @Sendable (PostgresConnection) throws -> Value
  ) async throws -> Value {
    try await processor.run { try mirror.atDatabase(body) }
  }

  func pause(_ duration: Duration) async throws { try await mirror.scheduler.sleep(duration) }
}
