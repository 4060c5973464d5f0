import FerryProtocol
import FerrySQLite
import FerryStoredValues

/// Rows without their parents (SPEC.md §28).
extension ReplicaFile {
  // MARK: A child that stays without its parent

  /// Sets the foreign keys of records to NULL or to their defaults, as SQLite does when their parents
  /// are deleted. That is recorded.
  func release(_ rows: [RecordKey: ParentLink], after time: HybridTimestamp) throws {
    if rows.isEmpty { return }
    capture.observe(time)
    for (key, link) in rows.sorted(by: {
      ($0.key.table, $0.key.record) < ($1.key.table, $1.key.record)
    }) {
      let table = try schema(of: key.table)
      let sets = link.from.map { local in
        let column = table.columns.first { $0.local.folded == local.folded }
        let value = link.action == .setDefault ? column?.defaultSQL : nil
        return "\(quoted(local)) = \(value.map { "(\($0))" } ?? "NULL")"
      }
      let match = zip(link.from, link.to).map {
        "p.\(quoted($1)) = \(quoted(table.local)).\(quoted($0))"
      }.joined(separator: " AND ")
      do {
        try recording {
          try connection.foreignKeyStatement(
            "UPDATE \(quoted(table.local)) SET \(sets.joined(separator: ", ")) "
              + "WHERE \(table.has(record: "?1")) AND NOT EXISTS "
              + "(SELECT 1 FROM \(quoted(link.parent)) AS p WHERE \(match))"
          ).run(key.record)
        }
      } catch let error as SQLiteError where error.concernsRow && connection.isInTransaction {
        // The row stays dangling, and is deferred.
      }
    }
  }

  // MARK: A child that goes

  /// Deletes a record that goes with a deleted one, here and, by an operation, on the server.
  func deleteOrphan(_ change: Change, _ plan: ApplyPlan) throws {
    capture.beginApplying(change.key, isDeleting: true)
    try plan.delete(change.key.record)
    let columns = change.state.columns.map { Column($0.name, $0.value) }
    var json = JSONWriter()
    json.columns(columns)
    try connection.run(
      """
      INSERT INTO ferry_operations(seq, id, grp, base, tbl, record, kind, data, concurrent)
      VALUES (\(OperationRecorder.newestOrder) + 1, ferry_operation(), ferry_group(), ferry_base(), ?1,
        ?2, 'delete', ?3, 1)
      """, change.key.table, change.key.record, SQLiteText(json.finish()))
    capture.endCascade()
    try kept.forget(change.key)
    try keepLost(change, columns)
    try note(
      "orphan",
      "\(change.key.table)/\(change.key.record) is deleted by a cascade: its parent record was "
        + "deleted on another device")
  }

  /// Keeps rows as conflicts that are deleted with a parent, if this device has written to them and the
  /// server has not confirmed it.
  ///
  /// - Parameter number: the operations after this number are the deletes.
  func keepLost(after number: Int64, winner: Stamp) throws {
    let lost = try connection.rows(
      """
      SELECT gone.tbl, gone.record, gone.data, own.id
      FROM ferry_operations AS gone, ferry_operations AS own
      WHERE gone.seq > ?1 AND gone.kind = 'delete' AND own.seq = (SELECT max(seq) FROM ferry_pending
        WHERE record = gone.record AND tbl = gone.tbl AND seq <= ?1)
      """, number
    ) { row in
      (
        key: RecordKey(table: row.name(0), record: row.name(1)), data: Array(row.textBytes(2)),
        own: row.uniqueID(3)
      )
    }
    for (key, data, own) in lost {
      guard let own else { continue }
      let columns = try decode(data, depth: limits.depth) { (reader) throws(MalformedMessage) in
        try reader.columns(limits: limits)
      }
      let loser = Stamp(time: own.timestamp, device: try identity().device)
      try keepLost(key, columns, of: OperationID(own), loser: loser, winner: winner)
    }
  }

  /// Keeps the values of another device's row that was deleted because its parent is gone.
  func keepLost(_ change: Change, _ columns: [Column]) throws {
    let stamps =
      change.state.columns.map(\.stamp) + [change.state.inserted?.stamp].compactMap { $0 }
    guard let loser = stamps.max(), let (id, winner) = try newestOperation() else { return }
    try keepLost(change.key, columns, of: id, loser: loser, winner: winner)
  }

  private func keepLost(
    _ key: RecordKey, _ columns: [Column], of operation: OperationID, loser: Stamp, winner: Stamp
  ) throws {
    try note(
      Conflict(column: nil, lost: .null, loser: loser, winner: winner), of: operation, on: key)
    for column in columns where column.value != .null {
      try note(
        Conflict(column: column.name, lost: column.value, loser: loser, winner: winner),
        of: operation, on: key)
    }
  }

  /// Returns the number of the last operation.
  func lastOperation() throws -> Int64 {
    try connection.first("SELECT coalesce(max(seq), 0) FROM ferry_operations") { $0.int64(0) } ?? 0
  }
}
