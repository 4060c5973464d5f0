import FerryPersistence
import FerryProtocol
import FerrySQLite

/// Steps of an application's migrator in a replica (SPEC.md §25 and §26).
extension ReplicaFile {
  /// The tracked tables while a step runs that nothing records.
  struct Suspension {
    /// A table before the step.
    struct Place: Equatable {
      let local: Name
      /// The first page of its rows, which a table that is created again does not have.
      let root: Int64
    }

    let places: [Name: Place]
    /// The folded names of the tables that the step has dropped.
    var dropped = Set<Name>()
  }

  /// Returns the names of the steps that the file has run, in their order.
  func stepsDone() throws -> [String] { try MigrationFile(connection: connection).done() }

  /// Runs a step, unless another process has run it. Returns whether it ran.
  ///
  /// A step that is not recorded runs without triggers. If the process ends before they are back,
  /// the next one takes all tables for unrecorded ones, and compares them with the server.
  func run(_ step: Migrator.Step, at place: Int) throws -> Bool {
    let file = MigrationFile(connection: connection, owner: self)
    if step.isRecorded {
      return try file.run(step, at: place, begin: { try refreshTriggersOfNewSchema() })
    }
    var unwritten = Set<Name>()
    defer { suspension = nil }
    let ran = try file.run(step, at: place) {
      try suspendRecording()
    } end: { written in
      unwritten = try tablesNotWritten(written)
      try note("migrated", "step '\(step.name)' ran")
    }
    suspension = nil
    guard ran else { return false }
    try connection.transaction {
      alteredTables = unwritten
      try refreshTriggers()
    }
    return true
  }

  private func suspendRecording() throws {
    try refreshTriggersOfNewSchema()
    var places: [Name: Suspension.Place] = [:]
    for name in try trackedTables() {
      guard let table = try? schema(of: name), table.name == name else { continue }
      places[name] = Suspension.Place(local: table.local, root: try root(of: table.local))
      try dropTriggers(of: name)
    }
    suspension = Suspension(places: places)
  }

  private func root(of local: Name) throws -> Int64 {
    try connection.first(
      "SELECT rootpage FROM sqlite_schema WHERE type = 'table' AND name = ? COLLATE NOCASE", local
    ) { $0.int64(0) } ?? 0
  }

  /// Returns the tracked tables with the rows from before a step. Tables that the step dropped are
  /// no longer tracked.
  ///
  /// - Parameter written: tables to which it may have written, by their names at that time.
  /// - Throws: ``ReplicaError/cannotTrack(table:_:)`` if a table lost its key.
  private func tablesNotWritten(_ written: Set<String>) throws -> Set<Name> {
    guard let suspension else { return [] }
    let written = Set(written.map { Name($0).folded }).union(suspension.dropped)
    var unwritten = Set<Name>()
    for (name, before) in suspension.places.sorted(by: { $0.key < $1.key }) {
      let candidates = try spaceNames().candidates(for: name)
      guard try candidates.contains(where: { try root(of: $0) != 0 }) else {
        try stopTracking(name)
        try note("untracked", "a step of the migration dropped \(name); it is no longer tracked")
        continue
      }
      let table = try schema(of: name)
      guard table.name == name else {
        throw ReplicaError.cannotTrack(table: name, "the step spells it \(table.name)")
      }
      let isSame = try root(of: table.local) == before.root
      let isWritten = written.contains(table.local.folded) || written.contains(before.local.folded)
      if isSame && !isWritten { unwritten.insert(name) }
    }
    return unwritten
  }
}
