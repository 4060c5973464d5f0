/// Decides when a live query is run again; pure. At most one run is under way, and all changes
/// during it count as one.
struct RefreshPlan: Equatable {
  /// The part of the file read by the last run; `nil` before the first one.
  private(set) var region: ReadRegion?
  /// The changes since the current run began.
  private var missed: ChangedTables?
  private var isRunning = false

  /// Returns true if the content of a table's changed rows can spare a run.
  func needsRows(of table: String) -> Bool { region?.hasConditions(on: table) ?? true }

  /// Adds a change. Returns true if a run must begin.
  mutating func change(_ changed: ChangedTables) -> Bool {
    guard isRunning else { return region.map(changed.concern) ?? false }
    if missed == nil { missed = changed } else { missed?.add(changed) }
    return false
  }

  /// Begins a run: the snapshot has all changes until now.
  mutating func begin() {
    isRunning = true
    missed = nil
  }

  /// Ends a run over this part of the file. Returns true if another run must begin.
  mutating func end(_ region: ReadRegion) -> Bool {
    isRunning = false
    self.region = region
    defer { missed = nil }
    return missed?.concern(region) ?? false
  }
}
