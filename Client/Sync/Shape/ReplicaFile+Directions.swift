import FerryProtocol
import FerrySQLite

/// Upload-only tables: their changes go to the server and are not pulled (SPEC.md §17).
extension ReplicaFile {
  var tracked: TrackedTables { TrackedTables(connection: connection) }

  /// Sets the direction of a tracked table's changes. It belongs to the table: one with rows of
  /// several spaces has the same direction in all of them.
  func turn(_ table: TableSchema, _ direction: TrackDirection) throws {
    guard table.share != nil else { return try turn(table.name, direction) }
    for file in spaces.all {
      guard let name = try file.trackedTable(local: table.local) else { continue }
      try file.turn(name, direction)
    }
  }

  private func turn(_ table: Name, _ direction: TrackDirection) throws {
    guard let before = try tracked.direction(of: table), before != direction else { return }
    if case .uploadOnly(automatic: _, fill: true) = direction {
      return try tracked.fill(table, then: direction)
    }
    // The next pull begins at the start, and then a returning table is two-way.
    try tracked.set(direction, of: table)
    switch direction {
    case .twoWay: try uploads.release(of: table)
    case .uploadOnly(automatic: let isAutomatic, fill: _):
      try forgetPulled(of: table)
      if isAutomatic { try uploads.release(of: table) }
    }
  }

  /// Makes tables upload-only after a complete pull has filled them.
  func endFills() throws {
    for (table, direction) in try tracked.fills() {
      try tracked.set(direction, of: table)
      try forgetPulled(of: table)
      try log("filled", "table \(table): it only sends its changes from now on")
    }
  }

  private func forgetPulled(of table: Name) throws {
    try kept.forget(table: table)
    try refreshes.remove(table: table)
  }

  /// Makes the current pull start from scratch if an upload-only table is two-way again: only a
  /// list from the start has the omitted records. No other sync may run.
  func beginReturns() throws {
    guard try tracked.hasReturning() else { return }
    try connection.transaction {
      try tracked.endReturns()
      if try syncState().epoch != nil { try goBack(to: 0) }
    }
  }
}
