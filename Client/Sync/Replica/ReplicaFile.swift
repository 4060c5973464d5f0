import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// The replica's file with a single writing connection: the user's tables, and Ferry's own.
///
/// Every step of a sync is one transaction here. So a process killed at any moment leaves the file
/// before or after a step, never within one. Synchronous and without a clock, so a simulation
/// drives the same code. Not `Sendable`: it stays on one thread.
package final class ReplicaFile {
  package let path: String
  /// The beginning of the paths of the first space's files beside the database.
  private let base: String
  /// The spaces of the file.
  let spaces: FileSpaces
  let limits: Limits
  package let connection: SQLiteConnection
  let capture: CaptureContext
  /// Reads the wall clock, milliseconds since 1970.
  let wallClock: () -> Int64
  /// The store of the token.
  let credentials: any CredentialStore
  /// The source of identifiers.
  let random: () -> UInt64
  /// Attempts to apply changes, also in rolled back transactions: a measure of the cost.
  var attempts = 0
  /// How first lists are filled in beside their tables, in all spaces of the file.
  package var firstListOptions = FirstListOptions()
  /// The first list that is being filled in.
  var filling: ListFilling?
  /// Runs after deferred changes were tried, now and then.
  var whileRetrying: (() -> Void)?
  /// Prepared plans for the tables that receive changes.
  let plans = ApplyPlans()
  /// The state of the schema known to fit the triggers and plans.
  var checkedSchema: SchemaMark?
  /// Schemas of tables read before.
  var knownSchemas: TableSchema.Known = [:]
  /// The space's schemas.
  private(set) lazy var schemas = SpaceSchemas(connection, wallClock: wallClock)
  /// Reports changed tables to live queries.
  let reporter: ChangeReporter
  /// The tracked table changed by the current ALTER TABLE.
  var alteredTables: Set<Name> = []
  /// Tables compared as a whole in the round under way: their unrecorded writes are recorded.
  var compared: [UnrecordedTable] = []
  /// The names of tables and columns in the space, read before.
  var knownNames: KnownNames?
  /// The tracked tables during an unrecorded step of a migration.
  var suspension: Suspension? {
    didSet { capture.isSuspended = suspension != nil }
  }
  /// The folded names of the tables dropped by the current transaction.
  var dropped = Set<Name>()

  /// Opens the file, and creates Ferry's tables if they are absent.
  ///
  /// - Parameters:
  ///   - base: the beginning of the paths of files beside it; `nil` for `path`.
  ///   - fileSystem: the SQLite VFS of the file; `nil` for the operating system's.
  ///   - busyTimeout: how long a statement waits while another program locks the file.
  /// - Throws: ``ReplicaError/cannotOpen(path:_:)`` with the reason; ``ReplicaError/busy(_:)``.
  package init(
    path: String, base: String? = nil, limits: Limits = .standard,
    wallClock: @escaping () -> Int64, random: @escaping () -> UInt64, fileSystem: String? = nil,
    busyTimeout: Duration = .seconds(10),
    credentials: any CredentialStore = MemoryCredentialStore()
  ) throws {
    self.credentials = credentials
    self.path = path
    self.base = base ?? path
    self.limits = limits
    self.wallClock = wallClock
    self.random = random
    spaces = FileSpaces()
    do {
      connection = try SQLiteConnection(
        path: path, busyTimeout: busyTimeout, fileSystem: fileSystem)
      connection.guardUserStatements()
      reporter = ChangeReporter(connection)
      capture = CaptureContext(limits: limits, wallClock: wallClock, random: random)
      try connection.execute(ReplicaSchema.connectionSettings)
      connection.fireTriggersByDefault()
      try ReplicaSchema.prepare(connection, path: path) {
        newDevice(wallClock, random)
      }
      try capture.install(on: connection)
      spaces.first = self
      answerCapture()
      try connection.transaction { try spaces.refreshTriggersOfNewSchema() }
      for file in spaces.all { try file.applyDeferredMissions() }
    } catch let error as SQLiteError where error.isBusy {
      throw ReplicaError.locked(error.message, path: path)
    } catch let error as SQLiteError where error.concernsDisk {
      throw ReplicaError.database("\(path): \(error.message)", code: error.code)
    } catch let error as SQLiteError {
      throw ReplicaError.cannotOpen(
        path: path, error.isNotADatabase ? "it is not a SQLite database" : error.message)
    }
  }

  /// Uses the replica's file through another library's connection. Neither the file nor the
  /// connection changes.
  ///
  /// - Parameter capture: records on the given connection.
  init(
    host connection: SQLiteConnection, capture: CaptureContext, limits: Limits,
    wallClock: @escaping () -> Int64, random: @escaping () -> UInt64
  ) {
    credentials = MemoryCredentialStore()
    path = connection.mainPath
    base = path
    self.limits = limits
    self.wallClock = wallClock
    self.random = random
    self.connection = connection
    self.capture = capture
    reporter = ChangeReporter(connection, isLogging: false)
    spaces = FileSpaces()
    spaces.first = self
  }

  /// Opens the ledger of a joined space of the file, on the file's connection.
  ///
  /// - Parameters:
  ///   - connection: shares the file's, with the names of the ledger.
  ///   - capture: records to the ledger.
  init(joined connection: SQLiteConnection, of first: ReplicaFile, capture: CaptureContext) {
    (path, base, limits, credentials) = (first.path, first.base, first.limits, first.credentials)
    (wallClock, random) = (first.wallClock, first.random)
    (spaces, reporter) = (first.spaces, first.reporter)
    self.connection = connection
    self.capture = capture
    answerCapture()
  }

  deinit { if number == 1 { spaces.close() } }

  // MARK: Own operations

  var packets: PacketTable { PacketTable(connection: connection) }

  var queue: OperationTable {
    OperationTable(connection: connection, limits: limits, capture: capture)
  }

  /// The recorded operations, and the packets made of them.
  var operations: OperationLog { OperationLog(queue: queue, packets: packets, schemas: schemas) }

  /// The packets as the server confirms them.
  var chain: PacketChain { PacketChain(self) }

  /// Operations the server can never apply, and the answers to them.
  var quarantine: QuarantineTable { QuarantineTable(connection: connection, queue: queue) }
  var refusedOperations: RefusedOperations { RefusedOperations(file: self) }
  var quarantineAnswers: QuarantineAnswers { QuarantineAnswers(file: self) }

  var failedUploads: FailedUploads { FailedUploads(connection: connection) }
  var uploads: UploadSteps { UploadSteps(file: self) }

  var conflicts: ConflictTable { ConflictTable(connection: connection, limits: limits) }
  var conflictLog: ConflictLog { ConflictLog(file: self) }
  var conflictAnswers: ConflictAnswers { ConflictAnswers(file: self) }
  var formerRows: FormerRows { FormerRows(connection: connection, limits: limits) }

  var batches: BatchWriter { BatchWriter(file: self) }
  var undoSteps: UndoSteps { UndoSteps(file: self) }
  var reports: ReplicaReports { ReplicaReports(file: self) }
  var rounds: RoundSteps { RoundSteps(file: self) }
  var unrecordedWrites: UnrecordedWrites { UnrecordedWrites(file: self) }

  // MARK: Pulled changes

  var waiting: WaitingChanges { WaitingChanges(file: self) }

  /// Changes waiting for the local schema.
  var kept: KeptChanges { KeptChanges(connection: connection, limits: limits) }

  var stagedPages: StagedPages { StagedPages(connection: connection, limits: limits) }

  /// Records to fetch whole with the next pull.
  var refreshes: RefreshTable { RefreshTable(connection: connection) }

  var marks: CursorMarks { CursorMarks(connection: connection) }

  /// The pull list that is not complete.
  package var incoming: StagedList {
    StagedList(connection: connection, limits: limits, wallClock: wallClock)
  }

  /// The first list that is filled in beside its tables.
  package var firstList: FirstListFiller { FirstListFiller(self) }

  /// Applies the staged pages and the last one; see ``PulledList/apply(_:)``.
  ///
  /// - Parameter progress: gets the number of changes tried so far, after each page.
  package func apply(
    last body: [UInt8], _ head: PageHead, progress: (Int) -> Void = { _ in }
  ) throws -> AppliedPull {
    try PulledList(file: self, last: body, head: head).apply(progress)
  }

  /// Returns the plan to apply changes to a table; `nil` if the file does not have it by this name.
  func plan(for table: Name) throws -> ApplyPlan? { try plans.plan(for: table, in: self) }

  /// Returns a plan for writes of the user's, which follow no rules of the space.
  func plainPlan(for table: Name) throws -> ApplyPlan { plainPlan(try schema(of: table)) }

  func plainPlan(_ table: TableSchema) -> ApplyPlan {
    ApplyPlan(table: table, rules: .standard, connection: connection)
  }

  // MARK: Names

  /// The number of the space in this file; 1 for the first one.
  var number: Int { connection.namespace.number }

  /// The beginning of the paths of the space's files beside the database.
  var place: String { number == 1 ? base : "\(base)-\(number)" }

  /// Returns one of Ferry's names in the space's ledger as a text of SQL.
  func ownLiteral(_ name: String) -> String { quoted(literal: connection.namespace.name(name)) }

  /// Runs `body` in one transaction; the tracked changes in it become one group in each space.
  package func write<T>(_ body: (Database) throws -> T) throws -> T {
    let first = spaces.first ?? self
    return try first.connection.transaction {
      try spaces.beginChanges()
      return try body(Database(connection: first.connection, owner: spaces))
    }
  }

  /// Runs `body` in one transaction as ``write(_:)`` does. `body` reports how many milliseconds ago the next
  /// writes were made elsewhere.
  func writeLate<T>(_ body: (Database, @escaping (Int64) -> Void) throws -> T) throws -> T {
    defer { capture.age = 0 }
    return try write { [capture] in try body($0) { capture.age = $0 } }
  }

  /// Returns the present schema of a table of the space, as far as Ferry needs it.
  func schema(of table: Name) throws -> TableSchema {
    try TableSchema.read(table, from: connection, spaceNames(), &knownSchemas)
  }

  /// Returns the value of a record's row in a column; `nil` if there is no row.
  func value(of column: Name, in key: RecordKey) throws -> Value? {
    let table = try schema(of: key.table)
    return try connection.first(
      "SELECT \(table.column(column).read("t")) FROM \(quoted(table.local)) AS t "
        + "WHERE \(table.has(record: "?1", in: "t"))", key.record
    ) { $0.value(0) }
  }

  /// Returns columns of a row, all of them by default, with the values of the space; `nil` without a row.
  func row(_ key: RecordKey, _ table: TableSchema, _ names: [Name]? = nil) throws -> [Column]? {
    let names = names ?? table.columns.map(\.name)
    let reads = ["1"] + names.map { table.column($0).read("t") }
    return try connection.first(
      "SELECT \(reads.joined(separator: ", ")) FROM \(quoted(table.local)) AS t "
        + "WHERE \(table.has(record: "?1", in: "t"))", key.record
    ) { row in
      names.enumerated().map { Column($1, row.value(Int32($0) + 1)) }
    }
  }

  /// Returns the space's rules for a table.
  func rules(for table: TableSchema) throws -> TableRules {
    try schemas.current().rules(for: table.name)
  }

  /// Returns the columns of a table that are counters.
  func counters(of table: TableSchema) throws -> [Name] {
    let rules = try rules(for: table)
    return table.columns.map(\.name).filter { rules.policy(of: $0) == .counter }
  }

  /// Returns a number that changes when another connection has changed the file.
  package func dataVersion() throws -> Int64 { try connection.dataVersion() }
}

/// Changes of the schema by the user's statements.
extension ReplicaFile {
  /// Removes Ferry's triggers before a table is altered: SQLite would not drop a column named in
  /// them. ``schemaChanged()`` restores them.
  func tableWillAlter(_ local: Name) throws {
    // What another program has changed before is no change of this transaction.
    try refreshTriggersOfNewSchema()
    guard let name = try trackedTable(local: local) else { return }
    if (try? schema(of: name)) != nil { alteredTables = [name] }
    try dropTriggers(of: name)
  }

  func schemaChanged() throws {
    defer { alteredTables = [] }
    try checkNames()
    if suspension == nil { try refreshTriggers() } else { try recordColumnsOfStep() }
  }
}

/// Returns a new device identifier.
func newDevice(_ wallClock: () -> Int64, _ random: () -> UInt64) -> DeviceID {
  DeviceID(
    UniqueID(timestamp: HybridTimestamp(milliseconds: wallClock()), random: random()))
}
