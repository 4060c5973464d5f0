import FerryProtocol
import FerrySQLite

/// The tables of this file as one space knows them: names, schemas, rules, and plans for changes
/// (SPEC.md §26).
///
/// Facts read once count until the schema of the file or of the space changes.
final class LocalTables {
  /// The names in the space, and the state of the file when they were read.
  private struct KnownNames {
    let names: SpaceNames
    let schema: SchemaMark
    /// The version of the space's schema.
    let spaceSchema: Int64
  }

  let connection: SQLiteConnection
  /// The space's schemas.
  let schemas: SpaceSchemas
  private let capture: CaptureContext
  private let wallClock: () -> Int64
  /// Schemas of tables read before.
  private var knownSchemas: TableSchema.Known = [:]
  /// The names of tables and columns in the space, read before.
  private var knownNames: KnownNames?
  private let plans = ApplyPlans()

  init(
    _ connection: SQLiteConnection, _ capture: CaptureContext, wallClock: @escaping () -> Int64
  ) {
    (self.connection, self.capture, self.wallClock) = (connection, capture, wallClock)
    schemas = SpaceSchemas(connection, wallClock: wallClock)
    capture.hasRow = { [unowned self] in try RecordRows(tables: self).has($0) }
    capture.hasLostParent = { [unowned self] in try foreignKeys.hasLostParent($0) }
  }

  var tracked: TrackedTables { TrackedTables(connection: connection) }

  var spellings: Spellings { Spellings(connection: connection) }

  var foreignKeys: ForeignKeys { ForeignKeys(tables: self) }

  /// Adds an entry to the log.
  func log(_ event: String, _ detail: String) throws {
    try EventLog(connection: connection).append(event, detail, now: wallClock())
  }

  /// Returns the state of the file's schema.
  func schemaMark() throws -> SchemaMark {
    let version = try connection.first("PRAGMA schema_version") { $0.int64(0) } ?? 0
    return SchemaMark(version: version, rollbacks: capture.rollbacks)
  }

  // MARK: Names

  /// Returns the names in the space. They change with the schema of the file or of the space; whatever
  /// else changes them calls ``forgetNames()``.
  func spaceNames() throws -> SpaceNames {
    let mark = try schemaMark()
    let schema = try schemas.current()
    if let known = knownNames, known.schema == mark, known.spaceSchema == schema.version {
      return known.names
    }
    var names = try SpaceNames.local(on: connection)
    if schema.hasAliases { names.schema = schema }
    knownNames = KnownNames(names: names, schema: mark, spaceSchema: schema.version)
    return names
  }

  /// Reads the names again when they are needed next.
  func forgetNames() { knownNames = nil }

  /// Returns the name in the space of a tracked table; SQL ignores case.
  func trackedTable(local: Name) throws -> Name? {
    try spaceNames().trackedTable(local: local)
  }

  /// Fails a statement if two columns of a tracked table would be one of the space after it.
  func checkNames() throws {
    if try spaceNames().isEmpty { return }
    for name in try tracked.names() {
      let local = try spaceNames().local(of: name, on: connection)
      var known: TableSchema.Known = [:]
      guard (try? TableSchema.read(unnamed: local, from: connection, &known)) != nil else {
        continue
      }
      _ = try schema(of: name)
    }
  }

  // MARK: Schemas

  /// Returns the present schema of a table of the space, as far as Ferry needs it.
  func schema(of table: Name) throws -> TableSchema {
    try TableSchema.read(table, from: connection, spaceNames(), &knownSchemas)
  }

  /// Returns a table by the name in this file, or in the space.
  func schema(local table: Name) throws -> TableSchema {
    guard try connection.hasTable(table) else { return try schema(of: table) }
    return try TableSchema.read(local: table, from: connection, spaceNames(), &knownSchemas)
  }

  /// Returns the schemas of the tracked tables in this file, apart from those unable to sync.
  func present() throws -> [TableSchema] {
    try tracked.names().compactMap(present)
  }

  /// Returns the schema of a table of the space; `nil` if the file does not have it by this name.
  /// SQLite treats names of another case as the same; the space does not (SPEC.md §23).
  func present(_ name: Name) -> TableSchema? {
    guard let table = try? schema(of: name), table.name == name else { return nil }
    return table
  }

  /// Returns the rules for a table that decide about this replica's operations.
  func rules(for table: TableSchema) throws -> TableRules {
    try schemas.deciding().rules(for: table.name)
  }

  /// Returns the columns of a table that are counters.
  func counters(of table: TableSchema) throws -> [Name] {
    let rules = try rules(for: table)
    return table.columns.map(\.name).filter { rules.policy(of: $0) == .counter }
  }

  // MARK: Plans

  /// Returns the plan to apply changes to a table; `nil` if the file does not have it by this name.
  func plan(for table: Name) throws -> ApplyPlan? { try plans.plan(for: table, in: self) }

  /// Returns a plan for this device's own writes to a table.
  func plainPlan(for table: Name) throws -> ApplyPlan {
    ApplyPlan(table: try schema(of: table), rules: .standard, connection: connection)
  }

  /// Returns the rules of the foreign keys of all tables.
  func parentRules() throws -> ParentRules { try plans.parentRules(in: self) }

  /// Forgets all plans: the schema or the space's rules have changed.
  func forgetPlans() { plans.removeAll() }
}
