import FerryPersistence
import FerryProtocol
import FerrySQLite

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
  /// The attempts to apply changes.
  let attempts = ApplyAttempts()
  /// How first lists are filled in beside their tables, in all spaces of the file.
  package var firstListOptions = FirstListOptions()
  /// True if operations are on the disk before the server gets them.
  package var sendsDurably = false
  /// The first list that is being filled in.
  var filling: ListFilling?
  /// The tables of the file, as the space knows them.
  let tables: LocalTables
  /// Reports changed tables to live queries.
  let reporter: ChangeReporter
  /// Tables compared as a whole in the round under way: their unrecorded writes are recorded.
  var compared: [UnrecordedTable] = []
  /// Changes of the file's schema.
  private(set) lazy var schemaChanges = SchemaChanges(self)

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
      tables = LocalTables(connection, capture, wallClock: wallClock)
      try connection.execute(ReplicaSchema.connectionSettings)
      connection.fireTriggersByDefault()
      try ReplicaSchema.prepare(connection, path: path) {
        newDevice(wallClock, random)
      }
      try capture.install(on: connection)
      spaces.first = self
      try connection.transaction { try spaces.refreshTriggersOfNewSchema() }
      for file in spaces.all { try DeferredMissions(file: file).apply() }
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
    tables = LocalTables(connection, capture, wallClock: wallClock)
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
    tables = LocalTables(connection, capture, wallClock: first.wallClock)
  }

  deinit { if number == 1 { spaces.close() } }

  /// The recording triggers of the tracked tables.
  var triggers: TableTriggers {
    TableTriggers(tables: tables) { [spaces] in spaces.all.map(\.tables) }
  }

  var tracking: TableTracking { TableTracking(file: self) }
  var directions: TableDirections { TableDirections(file: self) }

  /// The rows of records.
  var rows: RecordRows { RecordRows(tables: tables) }

  // MARK: Own operations

  var packets: PacketTable { PacketTable(connection: connection) }

  var queue: OperationTable {
    OperationTable(connection: connection, limits: limits, capture: capture)
  }

  /// The recorded operations, and the packets made of them.
  var operations: OperationLog {
    OperationLog(queue: queue, packets: packets, schemas: tables.schemas)
  }

  /// The packets as the server confirms them.
  var chain: PacketChain { PacketChain(self) }

  /// Operations the server can never apply, and the answers to them.
  var quarantine: QuarantineTable { QuarantineTable(connection: connection, queue: queue) }
  var refusedOperations: RefusedOperations {
    RefusedOperations(
      operations: operations, chain: chain, quarantine: quarantine, refreshes: refreshes,
      tables: tables, wallClock: wallClock)
  }
  var quarantineAnswers: QuarantineAnswers {
    QuarantineAnswers(
      quarantine: quarantine, failedUploads: failedUploads, operations: operations,
      batches: batches, rows: rows, spaces: spaces)
  }
  var overruledWrites: OverruledWrites {
    OverruledWrites(
      operations: operations, quarantine: quarantine, tables: tables, formerRows: formerRows,
      own: ownNames, wallClock: wallClock)
  }

  var failedUploads: FailedUploads { FailedUploads(connection: connection) }
  var uploads: UploadSteps {
    UploadSteps(
      failedUploads: failedUploads, operations: operations, tables: tables,
      answers: quarantineAnswers)
  }

  var conflicts: ConflictTable { ConflictTable(connection: connection, limits: limits) }
  var conflictLog: ConflictLog {
    ConflictLog(
      conflicts: conflicts, queue: queue, deviceNames: deviceNames, own: ownNames,
      wallClock: wallClock)
  }
  var conflictAnswers: ConflictAnswers { ConflictAnswers(file: self) }
  var formerRows: FormerRows { FormerRows(queue: queue) }
  /// Records returning with a row that refers to them.
  var formerParents: FormerParents {
    get throws { FormerParents(rows: rows, former: formerRows, device: try identity().device) }
  }

  var batches: BatchWriter { BatchWriter(tables: tables, queue: queue, kept: kept) }
  var undoSteps: UndoSteps {
    UndoSteps(
      queue: queue, chain: chain, refreshes: refreshes, rows: rows, settings: settings,
      capture: capture, spaces: spaces)
  }
  var reports: ReplicaReports { ReplicaReports(file: self) }
  var rounds: RoundSteps { RoundSteps(file: self) }
  var unrecordedWrites: UnrecordedWrites { UnrecordedWrites(file: self) }
  var reconciler: Reconciler {
    Reconciler(
      existingRows: tracking.existingRows, operations: operations,
      unrecordedWrites: unrecordedWrites, kept: kept, refreshes: refreshes,
      lostValues: LostValues(self), state: state, own: ownNames)
  }

  // MARK: Pulled changes

  var waiting: WaitingChanges {
    get throws {
      WaitingChanges(
        tables: tables, staged: stagedPages, kept: kept, applied: try syncState().applied)
    }
  }

  /// Changes waiting for the local schema.
  var kept: KeptChanges { KeptChanges(connection: connection, limits: limits) }

  /// The retries of waiting changes outside of a pull.
  var keptRetry: KeptRetry {
    KeptRetry(
      kept: kept, staged: stagedPages, rows: DanglingRows(self),
      adoption: SpellingAdoption(file: self), actions: pulledActions, attempts: attempts
    ) { try ApplyPass(file: self, device: self.identity().device, $0) }
  }
  var pulledActions: PulledActions.Interception {
    PulledActions.Interception(spaces: spaces, tables: tables, capture: capture)
  }

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

  /// Tracks tables; see ``TableTracking/track(_:creatingKey:direction:identity:sharedBy:)``.
  package func track(
    _ names: [Name], creatingKey key: Name? = nil, direction: TrackDirection = .twoWay,
    identity: KeyIdentity? = nil
  ) throws {
    try tracking.track(names, creatingKey: key, direction: direction, identity: identity)
  }

  /// Applies the staged pages and the last one; see ``PulledList/apply(_:)``.
  ///
  /// - Parameter progress: gets the number of changes tried so far, after each page.
  package func apply(
    last body: [UInt8], _ head: PageHead, progress: (Int) -> Void = { _ in }
  ) throws -> AppliedPull {
    try PulledList(file: self, last: body, head: head).apply(progress)
  }

  // MARK: The space

  /// The device's identifier, the server and the token.
  var settings: ServerSettings {
    ServerSettings(
      path: path, place: place, credentials: credentials, spaces: spaces, state: state)
  }

  /// The cursor, and the end of the last round.
  var state: ReplicaState {
    ReplicaState(connection: connection, limits: limits, wallClock: wallClock, path: path)
  }

  var deviceNames: DeviceNameTable { DeviceNameTable(connection: connection) }
  var nameSteps: DeviceNameSteps { DeviceNameSteps(file: self) }
  var log: EventLog { EventLog(connection: connection) }

  func identity() throws -> (device: DeviceID, server: ServerAddress?) { try settings.identity() }

  func syncState() throws -> SyncState { try state.load() }

  /// Adds an entry to the log.
  func log(_ event: String, _ detail: String) throws {
    try log.append(event, detail, now: wallClock())
  }

  /// The number of the space in this file; 1 for the first one.
  var number: Int { connection.namespace.number }

  /// The beginning of the paths of the space's files beside the database.
  var place: String { number == 1 ? base : "\(base)-\(number)" }

  /// Returns the space's name for messages.
  func spaceTitle() throws -> String {
    try identity().server.map { "space \($0.space)" } ?? "the file's first space"
  }

  /// Returns this device's identifiers.
  func ownNames() throws -> OwnNames { try OwnNames.read(identity().device, from: connection) }

  /// Returns one of Ferry's names in the space's ledger as a text of SQL.
  func ownLiteral(_ name: String) -> String { quoted(literal: connection.namespace.name(name)) }

  /// Runs `body` in one transaction; the tracked changes in it become one group in each space.
  package func write<T>(_ body: (Database) throws -> T) throws -> T {
    try spaces.write(body)
  }

  /// Runs `body` in one transaction as ``write(_:)`` does. `body` sets the marks of the next writes.
  func writeMarked<T>(_ body: (Database, WriteMarks) throws -> T) throws -> T {
    let marks = WriteMarks(capture: capture)
    defer { marks.reset() }
    return try write { try body($0, marks) }
  }

  /// Returns a number that changes when another connection has changed the file.
  package func dataVersion() throws -> Int64 { try connection.dataVersion() }
}

/// Returns a new device identifier.
func newDevice(_ wallClock: () -> Int64, _ random: () -> UInt64) -> DeviceID {
  DeviceID(
    UniqueID(timestamp: HybridTimestamp(milliseconds: wallClock()), random: random()))
}
