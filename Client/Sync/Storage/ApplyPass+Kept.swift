import FerryProtocol
import SQLite

/// What the local schema has refused is tried again when everything else is applied.
extension ApplyPass {
  /// Tries what was kept back again: its parent row or its column may be there now. Values that no
  /// two rows may share move between any number of rows, if they fit where all have arrived; the
  /// time for that grows with the number of these rows alone.
  ///
  /// - Parameter table: only what is kept for this table.
  mutating func settleKept(of table: Name? = nil) throws {
    guard hasKept else { return }
    let choice: KeptChoice = table.map { .ofTable($0) } ?? .refused
    let blocked = try retryKept(choice)
    // What stands in the way of a single one is no row that waits itself.
    if blocked.count > 1, !PlantedFault.valuesNotMoved.isPlanted { try move(blocked) }
  }

  /// - Returns: the records that values of other rows may block.
  private mutating func retryKept(_ choice: KeptChoice) throws -> [RecordKey] {
    var blocked: [RecordKey] = []
    var place = KeptPlace.start
    while let kept = try file.nextKept(choice, after: place) {
      place = KeptPlace(kept.change)
      guard kept.isReadable else { continue }
      if try apply(kept.change, isRetry: true) == .blocked { blocked.append(kept.change.key) }
    }
    return blocked
  }

  /// Takes the rows of these records out of their tables, and applies what is kept for them. Where
  /// not all of it fits, the rest is applied alone: what fails stays as it was, and so do those
  /// that would take its place.
  private mutating func move(_ keys: [RecordKey]) throws {
    let rows = RowsAside(connection: connection, capture: file.capture)
    for key in keys {
      if let plan = try file.plan(for: key.table) { try rows.prepare(plan.table) }
    }
    var moving = keys
    var attempts = 0
    while !moving.isEmpty && attempts < 2 {
      attempts += 1
      let before = self
      aside = rows
      try connection.execute("SAVEPOINT ferry_aside")
      let failed = try applyKept(moving)
      let staying = try staying(failed, among: moving)
      if !failed.isEmpty { try connection.execute("ROLLBACK TO ferry_aside") }
      try connection.execute("RELEASE ferry_aside")
      aside = nil
      if failed.isEmpty { break }
      self = before
      moving.removeAll { staying.contains($0) }
    }
    try rows.end()
  }

  /// - Returns: the records that could not be applied.
  private mutating func applyKept(_ keys: [RecordKey]) throws -> [RecordKey] {
    for key in keys { _ = try aside?.take(key) }
    var failed: [RecordKey] = []
    for key in keys {
      guard let kept = try file.keptChange(of: key) else { continue }
      try apply(kept.change, isRetry: true)
      if try file.keptChange(of: key)?.isRefused ?? false { failed.append(key) }
    }
    return failed
  }

  /// The records that have to stay as they are: those that failed, and those that now have values
  /// of one that stays.
  private func staying(_ failed: [RecordKey], among keys: [RecordKey]) throws -> Set<RecordKey> {
    var staying = Set(failed)
    if staying.isEmpty { return [] }
    let moving = Set(keys)
    var waiting = failed
    while let key = waiting.popLast() {
      for other in try aside?.successors(of: key) ?? [] where moving.contains(other) {
        if staying.insert(other).inserted { waiting.append(other) }
      }
    }
    return staying
  }
}
