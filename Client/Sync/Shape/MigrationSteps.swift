import FerryPersistence
import FerryProtocol
import FerrySQLite

/// Steps of an application's migrator in a replica (SPEC.md §25 and §26).
struct MigrationSteps {
  let file: ReplicaFile
  private var spaces: FileSpaces { file.spaces }
  private var connection: SQLiteConnection { (spaces.first ?? file).connection }

  /// Returns the names of the steps run in the file, in their order.
  func done() throws -> [String] {
    try MigrationFile(connection: connection).done()
  }

  /// Runs a step, unless another process has run it. Returns true if it ran.
  ///
  /// The triggers record nothing during an unrecorded step.
  ///
  /// - Parameter earlier: the steps before it.
  func run(_ step: Migrator.Step, after earlier: [String]) throws -> Bool {
    let steps = MigrationFile(connection: connection, owner: spaces)
    if step.isRecorded {
      return try steps.run(step, after: earlier) { try spaces.beginChanges() }
    }
    defer { for file in spaces.all { file.schemaChanges.endSuspension() } }
    let ran = try steps.run(step, after: earlier) {
      try spaces.beginChanges()
      for file in spaces.all { try file.schemaChanges.suspend() }
    } end: { written in
      for file in spaces.all { try file.schemaChanges.resume(written: written) }
      try self.file.log("migrated", "step '\(step.name)' ran")
    }
    // The step is in the file, whatever becomes of the changes waiting for the new columns: each
    // later transaction tries them again.
    if ran { try? connection.transaction { try spaces.refreshTriggersOfNewSchema() } }
    return ran
  }
}
