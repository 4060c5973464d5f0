import FerryPersistence
import FerryProtocol
import FerrySyncClient

/// The adoption of a company's tables by one process.
extension MirrorRounds {
  /// Uploads the rows of adopted tables until all are in the space or recorded as missing there, in
  /// this process.
  ///
  /// - Parameter onProgress: gets the progress of each table after each slice.
  package func adoptRows(
    _ onProgress: @escaping @Sendable ([AdoptionProgress]) -> Void
  ) async throws {
    try await releasingLog {
      var state = State()
      let file = try await prepared(&state)
      try await checkAdopted(file)
      try await MirrorUpload(parts: parts(file)).run(onProgress)
      // The triggers become the ordinary ones.
      state = State()
      _ = try await prepared(&state)
    }
  }

  /// Prepares the mirror's file for all adopted tables.
  ///
  /// - Returns: `true` if no row of the company has travelled, and the space has rows of the tables.
  /// - Throws: ``MirrorFault`` if the file cannot have one of them.
  func prepareAdoption() async throws -> Bool {
    var state = State()
    let file = try await releasingLog { try await prepared(&state) }
    try await checkAdopted(file)
    let ledger = ledger
    let hasBegun = try await pool.run { try ledger.adopted($0).contains { $0.rows > 0 } }
    if hasBegun || !state.isAdopting { return false }
    return try await replica.read { database in
      try file.plan.tables.contains { table in
        try !database.query("SELECT 1 FROM \(quoted(table.name)) LIMIT 1").isEmpty
      }
    }
  }

  private func checkAdopted(_ file: MirrorFile) async throws {
    for name in configuration.adoptions.keys.sorted() where file.plan.table(name) == nil {
      let faults = try await replica.trackAll().faults
      let reason = faults.first { $0.table == Name(name) }?.reason
      throw MirrorFault(
        description: "table \(name) cannot be in the file of a device"
          + (reason.map { ": \($0)" } ?? "; choose another space"))
    }
  }

  /// Returns whether rows of adopted tables have travelled, and whether tables are still to be
  /// compared with the rows of a removed mirror.
  func begun() async throws -> (hasRows: Bool, isReturning: Bool) {
    let ledger = ledger
    return try await pool.run { connection in
      let former = try ledger.former(connection)
      let adopted = try ledger.adopted(connection)
      return (adopted.contains { $0.rows > 0 && !former.contains($0.table) }, !former.isEmpty)
    }
  }
}
