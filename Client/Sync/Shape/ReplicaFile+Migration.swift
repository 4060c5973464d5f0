import FerryPersistence
import FerryProtocol
import FerrySQLite

/// Steps of an application's migrator in a replica (SPEC.md §25 and §26).
extension ReplicaFile {
  /// The tracked tables during an unrecorded step.
  struct Suspension {
    /// A table before the step.
    struct Place {
      /// The folded names of the table in this file so far.
      var locals: Set<Name>
      /// The first page of the table's rows; a recreated table has another one.
      let root: Int64?
    }

    var places: [Name: Place]
  }

  /// Returns the names of the steps run in the file, in their order.
  func stepsDone() throws -> [String] {
    try MigrationFile(connection: (spaces.first ?? self).connection).done()
  }

  /// Runs a step, unless another process has run it. Returns true if it ran.
  ///
  /// The triggers record nothing during an unrecorded step.
  ///
  /// - Parameter earlier: the steps before it.
  func run(_ step: Migrator.Step, after earlier: [String]) throws -> Bool {
    let connection = (spaces.first ?? self).connection
    let file = MigrationFile(connection: connection, owner: spaces)
    if step.isRecorded {
      return try file.run(step, after: earlier) { try spaces.beginChanges() }
    }
    defer { for file in spaces.all { file.suspension = nil } }
    let ran = try file.run(step, after: earlier) {
      try spaces.beginChanges()
      for file in spaces.all { try file.suspendRecording() }
    } end: { written in
      for file in spaces.all { try file.resumeRecording(written: written) }
      try log("migrated", "step '\(step.name)' ran")
    }
    // The step is in the file, whatever becomes of the changes waiting for the new columns: each
    // later transaction tries them again.
    if ran { try? connection.transaction { try spaces.refreshTriggersOfNewSchema() } }
    return ran
  }

  private func suspendRecording() throws {
    var places: [Name: Suspension.Place] = [:]
    for name in try tracked.names() {
      guard let table = try? schema(of: name), table.name == name else { continue }
      places[name] = Suspension.Place(
        locals: [table.local.folded], root: try root(of: table.local))
    }
    suspension = Suspension(places: places)
  }

  private func root(of local: Name) throws -> Int64? {
    try connection.first(
      "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE", local
    ) { $0.int64(0) }
  }

  /// Records the new columns after a statement of a step. A column dropped and added again has lost
  /// all values.
  func recordColumnsOfStep() throws {
    for name in suspension?.places.keys.sorted() ?? [] {
      guard let table = try? schema(of: name), table.name == name else { continue }
      try unrecordedWrites.markNewColumns(of: table)
      try unrecordedWrites.storeColumns(of: table)
    }
  }

  /// Resumes the recording of the tracked tables, in the transaction of the step. Tables written by
  /// the step are compared with the next sync. Tables dropped by it are no longer tracked.
  ///
  /// - Parameter written: tables possibly written by the step, by their names at that time.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` if a table has lost its key, or has a name
  ///   unknown to Ferry.
  private func resumeRecording(written: Set<String>) throws {
    let suspended = suspension
    suspension = nil
    let written = Set(written.map { Name($0).folded }).union(dropped)
    let isGuarded = try needsGuards()
    for (name, before) in (suspended?.places ?? [:]).sorted(by: { $0.key < $1.key }) {
      let local = try spaceNames().local(of: name, on: connection)
      guard let root = try root(of: local) else {
        try endTracking(name, before)
        continue
      }
      let table = try schema(of: name)
      guard table.name == name else {
        throw ReplicaError.cannotTrack(table: name, "the step spells it \(table.name)")
      }
      let isWritten = !before.locals.union([table.local.folded]).isDisjoint(with: written)
      if isWritten || root != before.root {
        try unrecordedWrites.mark(name)
      } else {
        try unrecordedWrites.markNewColumns(of: table)
      }
      try unrecordedWrites.storeColumns(of: table)
      let isKnown = try signature(of: name) == table.signature(rules(for: table))
      if try !isKnown || !hasTriggers(table, isGuarded: isGuarded) {
        try installTriggers(for: table, isGuarded: isGuarded)
      }
      // If changes wait, the next transaction finds another signature, and applies them.
      let waits = try connection.exists("SELECT 1 FROM ferry_kept WHERE tbl = ? LIMIT 1", name)
      try storeSignature(of: table, isWaiting: waits)
      forgetNames()
    }
  }

  private func endTracking(_ name: Name, _ before: Suspension.Place) throws {
    guard !before.locals.isDisjoint(with: dropped) else {
      throw ReplicaError.cannotTrack(
        table: name, "the step gives it another name by ALTER TABLE; use renameTable")
    }
    try checkNumbersUnused(of: name)
    try stopTracking(name)
    try log("untracked", "a step of the migration dropped \(name); it is no longer tracked")
  }
}
