import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Schema changes that bypass the triggers (SPEC.md §25). A sync compares the tables.
extension ReplicaFile {
  var unrecordedWrites: UnrecordedTables { UnrecordedTables(connection: connection) }

  /// Marks a whole table: it may have unrecorded rows. It was dropped and created again, it lost
  /// its triggers, or it was untracked for a time.
  func markUnrecorded(_ table: Name, since: SequenceNumber? = nil) throws {
    guard try unrecordedWrites.markWhole(table, since: since ?? syncState().applied) else { return }
    if let here = try? schema(of: table), here.name == table {
      try KeyNumbers(connection: connection).assignRows(of: here, fresh: capture.newRecord)
    }
    try log(
      "unrecorded",
      "\(table) was written to unrecorded; the next sync compares its rows with the server")
  }

  /// Marks a tracked table as absent. If it returns, the rows are compared.
  func markAbsent(_ table: Name) throws {
    // After a rename by another program, the triggers would record the other table as this one.
    try dropTriggers(of: table)
    try unrecordedWrites.markAbsent(table)
  }

  // MARK: Reading

  /// Returns tables to compare with the server, row by row.
  func unrecordedTables() throws -> [UnrecordedTable] {
    try unrecordedWrites.tables { (try? schema(of: $0))?.name == $0 }
  }

  /// Returns tables to compare, also if another program has just changed them.
  func currentUnrecordedTables() throws -> [UnrecordedTable] {
    try noticeNewSchema()
    return try unrecordedTables()
  }

  /// Returns tracked tables unable to sync in their present form, with the reason and a remedy.
  func tableFaults() throws -> [TableFault] {
    try unrecordedWrites.keptFaults().compactMap { name, fault in
      do {
        let found = try schema(of: name).name
        if found == name { return fault.map { TableFault(table: name, reason: $0) } }
        return TableFault(table: name, reason: "its name is spelled \(found) now")
      } catch ReplicaError.cannotTrack(_, let reason) {
        return TableFault(table: name, reason: reason)
      }
    }
  }

  /// Returns tables that may have unrecorded rows, found only on this device.
  func tablesWithUnknownRows() throws -> Set<Name> {
    let tables = try unrecordedTables().filter { table in
      table.isRemade && !compared.contains { $0.hasSameWrites(as: table) }
    }
    return Set(tables.map(\.table))
  }
}
