/// Decides when a live query is run again; pure. At most one run is under way, and all changes
/// during it count as one.
struct RefreshPlan: Equatable {
  /// The part of the file that the last run has read; `nil` before the first one.
  private(set) var region: ReadRegion?
  /// The changes since the current run began.
  private var missed: ChangedTables?
  private var isRunning = false

  /// Whether the content of a table's changed rows can spare a run.
  func needsRows(of table: String) -> Bool { region?.hasConditions(on: table) ?? true }

  /// Takes a change. Returns whether a run has to begin.
  mutating func change(_ changed: ChangedTables) -> Bool {
    guard isRunning else { return region.map(changed.concern) ?? false }
    if missed == nil { missed = changed } else { missed?.add(changed) }
    return false
  }

  /// Begins a run: its snapshot has all changes until now.
  mutating func begin() {
    isRunning = true
    missed = nil
  }

  /// Ends a run that has read this part of the file. Returns whether another run has to begin.
  mutating func end(_ region: ReadRegion) -> Bool {
    isRunning = false
    self.region = region
    defer { missed = nil }
    return missed?.concern(region) ?? false
  }
}
