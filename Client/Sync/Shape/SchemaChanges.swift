import FerryProtocol
import FerrySQLite

/// A state of the schema. The version may occur again after a rollback.
struct SchemaMark: Equatable {
  /// The version, different after each change of the schema (PRAGMA schema_version).
  let version: Int64
  /// The number of rolled back transactions of this connection.
  let rollbacks: Int

  /// The mark as stored in the file; the version of Ferry's triggers is part of it.
  var text: String { "\(CaptureTriggers.version):\(version)" }
}

/// Changes of the file's schema, by the user's statements, by steps of migrations, and by other
/// programs: the driver of ``TableState`` and ``Suspension``.
final class SchemaChanges {
  private unowned let file: ReplicaFile
  /// The state of the schema known to fit the triggers and plans.
  private(set) var checked: SchemaMark?
  /// The tracked table changed by the current ALTER TABLE.
  private var altered: Set<Name> = []
  /// The folded names of the tables dropped by the current transaction.
  private(set) var dropped = Set<Name>()
  /// The tracked tables during an unrecorded step of a migration.
  private var suspension: Suspension? {
    didSet { file.capture.isSuspended = suspension != nil }
  }

  init(_ file: ReplicaFile) { self.file = file }

  private var connection: SQLiteConnection { file.connection }
  private var tables: LocalTables { file.tables }
  private var triggers: TableTriggers { file.triggers }

  /// True during an unrecorded step of a migration.
  var isSuspended: Bool { suspension != nil }

  // MARK: Checks

  /// Returns true if nothing has changed since the last check.
  func isChecked() throws -> Bool { try tables.schemaMark() == checked }

  /// Begins a user's transaction.
  func begin() { dropped = [] }

  /// Updates the triggers if the schema has changed since their last check.
  func refreshIfNew() throws {
    if isSuspended { return }
    let mark = try tables.schemaMark()
    if mark == checked { return }
    let stored = try connection.first("SELECT mark FROM ferry_checked WHERE one = 1") {
      $0.text(0)
    }
    guard stored == mark.text else { return try refresh() }
    tables.forgetPlans()
    connection.forgetStatements()
    checked = mark
  }

  /// Updates the triggers outside of a transaction.
  func notice() throws {
    if try isChecked() { return }
    try connection.transaction { try file.spaces.refreshTriggersOfNewSchema() }
  }

  /// Records that the triggers fit the present schema.
  func markChecked() throws {
    let mark = try tables.schemaMark()
    if mark == checked { return }
    connection.forgetStatements()
    try file.kept.openAll()
    try connection.run("INSERT OR REPLACE INTO ferry_checked VALUES (1, ?)", mark.text)
    checked = mark
  }

  /// Returns true if the triggers record all tracked tables in the present schema, so a write of
  /// another library may be recorded. Stores a positive result, if the transaction `isWriting`.
  func triggersFit(isWriting: Bool) throws -> Bool {
    let version = try connection.first("PRAGMA main.schema_version") { $0.int64(0) } ?? 0
    let mark = SchemaMark(version: version, rollbacks: 0).text
    let stored = try connection.first("SELECT mark FROM main.ferry_checked") { $0.text(0) }
    if stored == mark { return true }
    // A rolled back savepoint may have used the same version.
    tables.forgetNames()
    guard try triggers.fitAllTables() else { return false }
    if isWriting {
      try connection.run("INSERT OR REPLACE INTO main.ferry_checked VALUES (1, ?)", mark)
    }
    return true
  }

  // MARK: Triggers

  /// Updates the triggers after a change of tracked tables' columns, and applies the changes
  /// kept for columns that exist now.
  func refresh() throws {
    tables.forgetPlans()
    let altered = altered
    self.altered = []
    let names = try tables.tracked.names()
    let isGuarded = try !names.isEmpty && UserTriggers(connection: connection).needGuards()
    // As in `track`: first read all tables, then change them.
    let changed = try names.compactMap { name in
      try update(name, isAltered: altered.contains(name), isGuarded: isGuarded)
    }
    try triggers.install(for: changed)
    for table in changed { try file.reconciler.storeOverwritten(in: table) }
    try file.keptRetry.apply(changed.map { .unknown(in: $0.name) })
    try markChecked()
  }

  /// Stores the columns of a changed table, and returns it; `nil` for any other one.
  private func update(_ name: Name, isAltered: Bool, isGuarded: Bool) throws -> TableSchema? {
    let table = tables.present(name)
    switch try state(of: table, isAltered: isAltered, isGuarded: isGuarded).consequence {
    case .none: return nil
    case .rejected:
      throw ReplicaError.cannotTrack(
        table: name,
        "it would be renamed or lose its key. To rename it, use renameTable or `ferry rename`. To create "
          + "it again, "
          + "fill a table of another name, drop \(name), and rename the new one to \(name)")
    case .absent:
      try file.unrecordedWrites.markAbsent(name)
      return nil
    case .compared: try file.unrecordedWrites.mark(name)
    case .newColumns: if let table { try file.unrecordedWrites.markNewColumns(of: table) }
    }
    guard let table else { return nil }
    try file.unrecordedWrites.storeColumns(of: table)
    try triggers.storeSignature(of: table)
    tables.forgetNames()
    return table
  }

  private func state(
    of table: TableSchema?, isAltered: Bool, isGuarded: Bool
  ) throws -> TableState {
    var state = TableState(isPresent: table != nil, isAltered: isAltered)
    guard let table else { return state }
    state.isKnown = try triggers.fitSignature(of: table)
    state.isAsCreated = try isAltered || triggers.areAsCreated(for: table)
    state.isRecorded = try triggers.areInstalled(for: table, isGuarded: isGuarded)
    return state
  }

  // MARK: Statements

  /// Rejects the drop of a table if rows of a tracked table would go with it.
  ///
  /// - Throws: ``ReplicaError/cannotDrop(table:_:)`` with the reason.
  func tableWillDrop(_ table: Name) throws {
    dropped.insert(table.folded)
    // Foreign keys are off during a step: no other row goes with the table.
    if !isSuspended { try tables.foreignKeys.checkDrop(of: table) }
  }

  /// Removes Ferry's triggers before a table is altered: SQLite would not drop a column named in
  /// them. ``applied()`` restores them.
  func tableWillAlter(_ local: Name) throws {
    // What another program has changed before is no change of this transaction.
    try refreshIfNew()
    guard let name = try tables.trackedTable(local: local) else { return }
    if (try? tables.schema(of: name)) != nil { altered = [name] }
    try triggers.drop(of: name)
  }

  /// Acts on a statement that has changed the schema.
  func applied() throws {
    defer { altered = [] }
    try tables.checkNames()
    if isSuspended { try recordColumnsOfStep() } else { try refresh() }
  }

  /// Enters the new name of a table, or of a column, among the tracked tables.
  func apply(_ renaming: Renaming) throws {
    defer { tables.forgetNames() }
    guard let name = renaming.tracked[file.number] else { return }
    if let column = renaming.column {
      try connection.run(
        "UPDATE ferry_tables SET space_column = ? WHERE name = ? AND space_column = ?",
        renaming.to, name, column)
    } else {
      try connection.run("UPDATE ferry_tables SET local = ? WHERE name = ?", renaming.to, name)
      suspension?.places[name]?.locals.insert(renaming.to.folded)
    }
  }

  // MARK: Unrecorded steps

  /// Stops the recording for a step.
  func suspend() throws {
    var places: [Name: Suspension.Place] = [:]
    for table in try tables.present() {
      places[table.name] = Suspension.Place(
        locals: [table.local.folded], root: try root(of: table.local))
    }
    suspension = Suspension(places: places)
  }

  /// Ends a step, also a failed one.
  func endSuspension() { suspension = nil }

  private func root(of local: Name) throws -> Int64? {
    try connection.first(
      "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE", local
    ) { $0.int64(0) }
  }

  /// Records the new columns after a statement of a step. A column dropped and added again has lost
  /// all values.
  private func recordColumnsOfStep() throws {
    for name in suspension?.places.keys.sorted() ?? [] {
      guard let table = tables.present(name) else { continue }
      try file.unrecordedWrites.markNewColumns(of: table)
      try file.unrecordedWrites.storeColumns(of: table)
    }
  }

  /// Resumes the recording of the tracked tables, in the transaction of the step. Tables written by
  /// the step are compared with the next sync. Tables dropped by it are no longer tracked.
  ///
  /// - Parameter written: tables possibly written by the step, by their names at that time.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` if a table has lost its key, or has a name
  ///   unknown to Ferry.
  func resume(written: Set<String>) throws {
    guard let step = suspension else { return }
    suspension = nil
    let written = Set(written.map { Name($0).folded })
    let isGuarded = try UserTriggers(connection: connection).needGuards()
    for name in step.places.keys.sorted() {
      let local = try tables.spaceNames().local(of: name, on: connection)
      let consequence = step.consequence(
        for: name, local: local, root: try root(of: local), written: written, dropped: dropped)
      switch consequence {
      case .untracked: try file.tracking.end(droppedByStep: name)
      case .rejected:
        throw ReplicaError.cannotTrack(
          table: name, "the step gives it another name by ALTER TABLE; use renameTable")
      case .compared, .newColumns:
        try resume(name, isCompared: consequence == .compared, isGuarded: isGuarded)
      }
    }
  }

  private func resume(_ name: Name, isCompared: Bool, isGuarded: Bool) throws {
    let table = try tables.schema(of: name)
    guard table.name == name else {
      throw ReplicaError.cannotTrack(table: name, "the step spells it \(table.name)")
    }
    if isCompared {
      try file.unrecordedWrites.mark(name)
    } else {
      try file.unrecordedWrites.markNewColumns(of: table)
    }
    try file.unrecordedWrites.storeColumns(of: table)
    let fit = try triggers.fitSignature(of: table)
    if try !fit || !triggers.areInstalled(for: table, isGuarded: isGuarded) {
      try triggers.install(for: [table])
    }
    // If changes wait, the next transaction finds another signature, and applies them.
    let waits = try connection.exists("SELECT 1 FROM ferry_kept WHERE tbl = ? LIMIT 1", name)
    try triggers.storeSignature(of: table, isWaiting: waits)
    tables.forgetNames()
  }
}
