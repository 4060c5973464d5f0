import FerryProtocol
import SQLite

/// The replica's file behind one writing connection: the user's tables, and Ferry's own.
///
/// Every step of a sync is one transaction here, so a process killed at any moment leaves the
/// file before or after a step, never within one. Synchronous and without a clock of its own, so
/// that a simulation drives the same code. Not `Sendable`: it stays on one thread.
package final class ReplicaFile {
  package let path: String
  let limits: Limits
  package let connection: SQLiteConnection
  let capture: CaptureContext
  /// Reads the wall clock, milliseconds since 1970.
  let wallClock: () -> Int64
  /// Where the token is kept.
  let credentials: any CredentialStore
  /// Where identifiers come from.
  let random: () -> UInt64
  /// Prepared plans for the tables that changes are applied to.
  var applyPlans: [Name: ApplyPlan] = [:]
  /// Which state of the schema the triggers and plans are known to fit.
  var checkedSchema: SchemaMark?
  /// Schemas of tables that were read before.
  var knownSchemas: TableSchema.Known = [:]
  /// The space's schemas that were read before, by version.
  var knownSpaceSchemas: [Int64: SpaceSchema] = [:]
  /// Tracked tables that were there before the ALTER TABLE under way.
  var alteredTables: Set<Name> = []

  /// Opens the file, and makes Ferry's tables when they are not there.
  ///
  /// - Parameter fileSystem: the SQLite VFS that holds it; `nil` for the operating system's.
  /// - Throws: ``ReplicaError/cannotOpen(path:_:)`` with the reason.
  package init(
    path: String, limits: Limits = .standard, wallClock: @escaping () -> Int64,
    random: @escaping () -> UInt64, fileSystem: String? = nil,
    credentials: any CredentialStore = MemoryCredentialStore()
  ) throws {
    self.credentials = credentials
    self.path = path
    self.limits = limits
    self.wallClock = wallClock
    self.random = random
    do {
      connection = try SQLiteConnection(path: path, fileSystem: fileSystem)
      connection.guardUserStatements()
      capture = CaptureContext(limits: limits, wallClock: wallClock, random: random)
      try connection.execute(ReplicaSchema.connectionSettings)
      try ReplicaSchema.prepare(connection, path: path) {
        newDevice(wallClock, random).value.bytes
      }
      try capture.install(on: connection)
      try connection.transaction { try refreshTriggersOfNewSchema() }
      try takeKeptMissions()
    } catch let error as SQLiteError where error.concernsDisk {
      throw ReplicaError.database("\(path): \(error.message)", code: error.code)
    } catch let error as SQLiteError {
      throw ReplicaError.cannotOpen(
        path: path, error.isNotADatabase ? "it is not a SQLite database" : error.message)
    }
  }

  /// Runs `body` in one transaction, whose tracked changes become one group.
  package func write<T>(_ body: (Database) throws -> T) throws -> T {
    try connection.transaction {
      let database = Database(
        connection: connection, schemaWillChange: { [unowned self] in try removeTriggers() },
        tableWillDrop: { [unowned self] in try checkDrop(of: $0) },
        schemaChanged: { [unowned self] in try refreshTriggers() },
        recordBatch: { [unowned self] in try recordBatch($0) })
      return try body(database)
    }
  }

  /// What Ferry has to know of a user's table, as it is now.
  func schema(of table: Name) throws -> TableSchema {
    try TableSchema.read(table, from: connection, &knownSchemas)
  }

  /// What a record's row holds in a column; `nil` where there is no row.
  func value(of column: Name, in key: RecordKey) throws -> Value? {
    let table = try schema(of: key.table)
    let find = try connection.statement(
      "SELECT t.\(quoted(column)) FROM \(quoted(table.name)) AS t WHERE t.\(quoted(table.key)) = ?"
    )
    find.bind(1, key.record)
    return try find.first { $0.value(0) }
  }

  /// A number that changes when another connection has changed the file.
  package func dataVersion() throws -> Int64 {
    try connection.statement("PRAGMA data_version").first { $0.int64(0) } ?? 0
  }
}

/// A fresh identity.
func newDevice(_ wallClock: () -> Int64, _ random: () -> UInt64) -> DeviceID {
  DeviceID(
    UniqueID(timestamp: HybridTimestamp(milliseconds: wallClock()), random: random()))
}
