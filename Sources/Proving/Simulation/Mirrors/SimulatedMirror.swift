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
  private var configuration: MirrorConfiguration
  /// True if the tables are a company's.
  private let adopts: Bool
  /// True if the company's tables refuse and change some rows.
  private let hasRules: Bool
  /// True if the space's rules give way to programs' writes, as they do to any adopting mirror.
  var isAuthority: Bool { hasRules || hasOrders }
  /// True if sequences of the company number some tables.
  private let hasOrders: Bool
  /// Lets these sequences count the rows of the mirror's file; `nil` if there are none.
  private(set) var numbers: MirrorNumbers?
  /// The word of the database, in place of one by chance.
  private static let origin = "00000000-0000-4000-8000-000000000000"
  private let scheduler: Scheduler
  private let trace: Trace
  private let dice: FaultDice
  private let site: FaultDice.Site
  /// Kills the device's process.
  private let kill: () -> Void
  private var connection: PostgresConnection?
  /// `nil` before the mirror is made.
  private var plan: MirrorPlan?
  /// The tables in PostgreSQL; none before they are made.
  private var tables: [Name] = []
  private var made: Set<RecordKey> = []
  private var removed: Set<RecordKey> = []
  private var taken: Set<RecordKey> = []
  private var rejected: Set<RecordKey> = []
  private var balances: [RecordKey: Int64] = [:]
  /// The tokens of numbered rows made by programs, and not deleted by them.
  private var tokens: Set<String> = []
  /// When programs wrote, by their transactions: virtual microseconds.
  private var times: [String: Int64] = [:]

  init(
    _ name: String, space: SpaceName, database: String, adopts: Bool, hasRules: Bool,
    hasOrders: Bool,
    scheduler: Scheduler, trace: Trace, dice: FaultDice, kill: @escaping () -> Void
  ) {
    (self.name, self.scheduler, self.trace, self.dice) = (name, scheduler, trace, dice)
    (self.adopts, self.hasRules, self.kill) = (adopts, adopts && hasRules, kill)
    self.hasOrders = adopts && hasOrders
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
  private var companyTables: [String] {
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
        if event == "applied" || event == "adopting" { observe() }
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
    return try await pool.run { connection in
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

  private func connected() throws -> PostgresConnection {
    if let connection { return connection }
    let new = try PostgresConnection(url: configuration.database, settings: .mirrors)
    connection = new
    return new
  }

  func close() { connection = nil }

  // MARK: The program

  /// Makes a program's transaction, if there are tables.
  func perform(_ planned: PlannedAction) {
    do {
      try makeCompany()
      if tables.isEmpty { return }
      let connection = try connected()
      let written = try connection.transaction { connection in
        try connection.execute("SET LOCAL search_path = \(quoted(Name(name)))")
        let statements = try Workload.program(
          for: planned, name: name, hasOrders: hasOrders
        ) { sql in
          let rows = try connection.query(.once(sql))
          return try rows.map { try Self.values($0, rows.columnCount) }
        }
        let before = try CompanySnapshot(connection, of: tables, name: name)
        // The space defines the tables as they are at the adoption.
        for statement in hasRules && plan != nil ? CompanyRules.redefinitions(for: planned) : [] {
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

  /// Returns the values of a row of texts and integers.
  private static func values(_ row: PostgresRow, _ count: Int) throws -> [Value] {
    try (0..<count).map { column in
      if row.isNull(column) { return .null }
      if let number = try? row.int8(column) { return .integer(number) }
      return .text(try row.text(column))
    }
  }

  // MARK: Looking

  /// Returns the work left to drain; `nil` if there is none.
  func left(in file: SQLiteConnection?) -> String? {
    guard let plan, let connection = try? connected(), let file else {
      return "it has no tables yet"
    }
    do {
      let captured = try count("captured", connection)
      if captured > 0 { return "\(captured) writes of programs are captured" }
      let adopting = try count("adopted", where: "NOT t.done", connection)
      if adopting > 0 { return "rows of \(adopting) tables are not adopted" }
      for table in plan.tables
      where try file.exists("SELECT 1 FROM \(quoted(Name("mirror.changed.\(table.name)")))") {
        return "rows of \(table.name) are not in PostgreSQL"
      }
      return nil
    } catch {
      return "its tables cannot be read: \(error)"
    }
  }

  /// Returns both sides.
  func evidence(in file: SQLiteConnection) throws -> MirrorSidesEvidence {
    var evidence = MirrorSidesEvidence()
    (evidence.made, evidence.taken, evidence.rejected) = (made, taken, rejected)
    (evidence.balances, evidence.removed, evidence.hasRules) = (balances, removed, hasRules)
    (evidence.tokens, evidence.hasOrders) = (tokens, hasOrders)
    evidence.device = try? ReplicaEvidence.readProgress(file).device
    let connection = try connected()
    evidence.deferred = try listed("deferred", connection)
    evidence.unsent = try listed("unsent", connection)
    let refused = try file.rows("SELECT tbl, record FROM ferry_quarantine") {
      RecordKey(table: $0.name(0), record: $0.name(1))
    }
    evidence.rejected.formUnion(refused)
    for table in try presentPlan(file)?.tables ?? [] {
      try read(table, connection, file, into: &evidence)
    }
    return evidence
  }

  /// Returns the plan for the space's schema in the file: the mirror may have followed changes of the
  /// tables since it began.
  private func presentPlan(_ file: SQLiteConnection) throws -> MirrorPlan? {
    let document = try file.first(
      "SELECT document FROM ferry_schemas WHERE version = (SELECT schema FROM ferry_replica)"
    ) { $0.text(0) }
    guard plan != nil, let document else { return plan }
    return try configuration.plan(try SpaceSchema(json: document))
  }

  /// Counts the mirror's entries in a table `t` of the ledger.
  private func count(
    _ table: String, where condition: String = "true", _ connection: PostgresConnection
  ) throws -> Int64 {
    try connection.query(
      .once(
        """
        SELECT count(*) FROM ferry_mirror.\(table) t JOIN ferry_mirror.mirrors m ON m.number = t.mirror
        WHERE m.name = $1 AND \(condition)
        """), [.text(name)]
    ).first?.int8(0) ?? 0
  }

  /// Returns the records listed by the mirror in a table of the ledger.
  private func listed(
    _ table: String, _ connection: PostgresConnection
  ) throws -> Set<RecordKey> {
    let rows = try connection.query(
      .once(
        """
        SELECT t.tab, t.key[1] FROM ferry_mirror.\(table) t
        JOIN ferry_mirror.mirrors m ON m.number = t.mirror WHERE m.name = $1
        """), [.text(name)])
    return Set(
      try rows.map { RecordKey(table: Name(try $0.text(0)), record: Name(try $0.text(1))) })
  }

  private func read(
    _ table: MirrorTable, _ connection: PostgresConnection, _ file: SQLiteConnection,
    into evidence: inout MirrorSidesEvidence
  ) throws {
    let columns = table.columns.map(\.name)
    let texts = columns.map { "\(quoted($0))::text" }
    for row in try connection.query(
      .once(
        "SELECT \((["id::text"] + texts).joined(separator: ", ")) FROM \(quoted(Name(name))).\(quoted(table.name))"
      ))
    {
      var values: [Name: String?] = [:]
      for (place, column) in columns.enumerated() {
        values[column] = row.isNull(place + 1) ? .some(nil) : try row.text(place + 1)
      }
      evidence.tables[RecordKey(table: table.name, record: Name(try row.text(0)))] = values
    }
    let list = (["id"] + columns.map { quoted($0) }).joined(separator: ", ")
    let kinds = table.columns.map(\.affinity)
    let rows = try file.rows("SELECT \(list) FROM \(quoted(table.name))") { row in
      (row.name(0), columns.indices.map { row.value(Int32($0 + 1)) })
    }
    for (id, values) in rows {
      let key = RecordKey(table: table.name, record: id)
      var texts: [Name: String?] = [:]
      for (place, value) in values.enumerated() {
        switch (value, kinds[place]) {
        case (.null, _): texts[columns[place]] = .some(nil)
        case (.integer(let number), .integer): texts[columns[place]] = String(number)
        case (.text(let text), .text) where !text.utf8.contains(0): texts[columns[place]] = text
        default: evidence.unfit.insert(key)
        }
      }
      evidence.replica[key] = texts
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
}
