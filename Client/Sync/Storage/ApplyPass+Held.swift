import FerryProtocol
import FerrySQLite

/// Deletes of records to which rows here refer, after the rest of a pull list (SPEC.md §28).
extension ApplyPass {
  /// Deletes the records together that no other row keeps, and brings the others back.
  mutating func settleHeld() throws {
    if held.isEmpty { return }
    var leaving = held.sorted { ($0.table, $0.record) < ($1.table, $1.record) }
    try connection.execute(
      """
      CREATE TABLE IF NOT EXISTS temp.ferry_leaving(
        tbl TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY(tbl, record)) WITHOUT ROWID;
      DELETE FROM temp.ferry_leaving
      """)
    let add = try connection.statement("INSERT INTO temp.ferry_leaving VALUES (?, ?)")
    for key in leaving { try add.run(key.table, key.record) }
    var staying: [RecordKey] = []
    var before = leaving.count + 1
    while leaving.count < before {
      before = leaving.count
      leaving = try stillLeaving(leaving, &staying)
    }
    for key in staying { try bringBack(key) }
    try delete(leaving)
    held = []
  }

  /// Returns those of the records that no row keeps, apart from rows that leave as well.
  private mutating func stillLeaving(
    _ keys: [RecordKey], _ staying: inout [RecordKey]
  ) throws -> [RecordKey] {
    var leaving: [RecordKey] = []
    for key in keys {
      let isKept = try plan(for: key.table)?.isHeld(key.record, by: .init(isStaying: true)) ?? false
      guard isKept else {
        leaving.append(key)
        continue
      }
      staying.append(key)
      try connection.run(
        "DELETE FROM temp.ferry_leaving WHERE tbl = ? AND record = ?", key.table, key.record)
    }
    return leaving
  }

  /// Records a parent as inserted again. If the server has rejected that before, the delete stays
  /// deferred.
  private mutating func bringBack(_ key: RecordKey) throws {
    guard let plan = try plan(for: key.table),
      let deletion = try file.kept.state(of: key)?.state?.deleted,
      try !file.isReturnRejected(key)
    else { return }
    let isAsking = try plan.isHeld(key.record, by: .init(isAsking: true, isStaying: true))
    file.capture.observe(newestTime)
    try file.keepParent(key, in: plan.table, deletion.stamp, isAsking: isAsking)
    refused.remove(key)
    hasPending = true
  }

  /// Deletes records that may refer to each other. With ON DELETE RESTRICT, SQLite permits it only
  /// from the last child on.
  private mutating func delete(_ keys: [RecordKey]) throws {
    isSettlingHeld = true
    defer { isSettlingHeld = false }
    var rest = keys
    var before = rest.count + 1
    while !rest.isEmpty && rest.count < before {
      before = rest.count
      var failed: [RecordKey] = []
      for key in rest {
        guard let kept = try file.kept.change(of: key), kept.isReadable else { continue }
        try apply(kept.change, isRetry: true)
        if try file.kept.change(of: key)?.isRefused ?? false { failed.append(key) }
      }
      rest = failed
    }
  }
}
