/// Tables that have changed.
package enum ChangedTables: Sendable, Equatable {
  case some(Set<String>)
  /// Another process has changed the file.
  case unknown

  /// Whether one of these tables may have changed.
  func concern(_ tables: Set<String>) -> Bool {
    switch self {
    case .some(let changed): !changed.isDisjoint(with: tables)
    case .unknown: true
    }
  }

  mutating func add(_ other: ChangedTables) {
    guard case .some(let new) = other, case .some(var known) = self else {
      self = .unknown
      return
    }
    known.formUnion(new)
    self = .some(known)
  }
}

/// Decides when a live query is run again; pure. At most one run is under way, and all changes
/// during it count as one.
struct RefreshPlan: Equatable {
  /// The tables that the last run has read; `nil` before the first one.
  private(set) var tables: Set<String>?
  /// The changes since the current run began.
  private var missed: ChangedTables?
  private var isRunning = false

  /// Takes a change. Returns whether a run has to begin.
  mutating func change(_ changed: ChangedTables) -> Bool {
    guard isRunning else { return tables.map(changed.concern) ?? false }
    if missed == nil { missed = changed } else { missed?.add(changed) }
    return false
  }

  /// Begins a run: its snapshot has all changes until now.
  mutating func begin() {
    isRunning = true
    missed = nil
  }

  /// Ends a run that has read these tables. Returns whether another run has to begin.
  mutating func end(_ tables: Set<String>) -> Bool {
    isRunning = false
    self.tables = tables
    defer { missed = nil }
    return missed?.concern(tables) ?? false
  }
}
