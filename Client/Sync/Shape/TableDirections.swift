import FerryProtocol
import FerrySQLite

/// Upload-only tables: their changes go to the server and are not pulled (SPEC.md §17).
struct TableDirections {
  let file: ReplicaFile
  private var tracked: TrackedTables { file.tables.tracked }

  /// Sets the direction of a tracked table's changes. It belongs to the table: one with rows of
  /// several spaces has the same direction in all of them.
  func set(_ direction: TrackDirection, of table: TableSchema) throws {
    guard table.share != nil else { return try set(direction, of: table.name) }
    for file in file.spaces.all {
      guard let name = try file.tables.trackedTable(local: table.local) else { continue }
      try file.directions.set(direction, of: name)
    }
  }

  private func set(_ direction: TrackDirection, of table: Name) throws {
    guard let before = try tracked.direction(of: table), before != direction else { return }
    if case .uploadOnly(automatic: _, fill: true) = direction {
      return try tracked.fill(table, then: direction)
    }
    // The next pull begins at the start, and then a returning table is two-way.
    try tracked.set(direction, of: table)
    switch direction {
    case .twoWay: try file.uploads.release(of: table)
    case .uploadOnly(automatic: let isAutomatic, fill: _):
      try forgetPulled(of: table)
      if isAutomatic { try file.uploads.release(of: table) }
    }
  }

  /// Makes tables upload-only after a complete pull has filled them.
  func endFills() throws {
    for (table, direction) in try tracked.fills() {
      try tracked.set(direction, of: table)
      try forgetPulled(of: table)
      try file.log("filled", "table \(table): it only sends its changes from now on")
    }
  }

  private func forgetPulled(of table: Name) throws {
    try file.kept.forget(table: table)
    try file.refreshes.remove(table: table)
  }

  /// Makes the current pull start from scratch if an upload-only table is two-way again: only a
  /// list from the start has the omitted records. No other sync may run.
  func beginReturns() throws {
    guard try tracked.hasReturning() else { return }
    try file.connection.transaction {
      try tracked.endReturns()
      if try file.syncState().epoch != nil { try file.state.goBack(to: 0) }
    }
  }
}
