import FerryProtocol
import FerrySQLite

/// Rows without their parents (SPEC.md §28): they lose the reference, or go with the parent.
struct Orphans {
  private let file: ReplicaFile
  private var connection: SQLiteConnection { file.connection }

  init(_ file: ReplicaFile) { self.file = file }

  // MARK: A child without a parent

  /// Sets the foreign keys of records to NULL or to their defaults, as SQLite does when their
  /// parents are deleted. The change is recorded.
  func release(_ rows: [RecordKey: ForeignKey], after time: HybridTimestamp) throws {
    if rows.isEmpty { return }
    file.capture.observe(time)
    for (key, link) in rows.sorted(by: {
      ($0.key.table, $0.key.record) < ($1.key.table, $1.key.record)
    }) {
      let table = try file.tables.schema(of: key.table)
      let sets = link.from.map { local in
        let column = table.columns.first { $0.local.folded == local.folded }
        let value = link.onDelete == .setDefault ? column?.defaultSQL : nil
        return "\(quoted(local)) = \(value.map { "(\($0))" } ?? "NULL")"
      }
      do {
        try file.capture.recordApart {
          try connection.foreignKeyStatement(
            "UPDATE \(quoted(table.local)) SET \(sets.joined(separator: ", ")) "
              + "WHERE \(table.has(record: "?1")) AND NOT EXISTS "
              + "(SELECT 1 FROM \(quoted(link.parent)) AS p "
              + "WHERE \(link.match(child: quoted(table.local))))"
          ).run(key.record)
        }
      } catch let error as SQLiteError where error.concernsRow && connection.isInTransaction {
        // The row stays dangling, and is deferred.
      }
    }
  }

  // MARK: A child that goes

  /// Deletes a record with a deleted parent, here and, by an operation, on the server.
  func delete(_ change: Change, _ plan: ApplyPlan) throws {
    file.capture.beginApplying(change.key, .orphan)
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
    file.capture.endCascade()
    try file.kept.forget(change.key)
    try storeLost(change, columns)
    try file.log(
      "orphan",
      "\(change.key.table)/\(change.key.record) is deleted by a cascade: its parent record was "
        + "deleted on another device")
  }

  /// Stores rows as conflicts if they went with a deleted one. The author of the delete had not
  /// seen them: otherwise the list would delete them as well, before their parent.
  ///
  /// The deletes count as made by a device that has seen no write of these rows. So the server
  /// notifies the authors of the rows, too.
  ///
  /// - Parameters:
  ///   - number: the operations after this number are the deletes.
  ///   - winner: the delete of the parent; `nil` if it is this device's own.
  /// - Returns: True if there are such rows.
  func storeLost(after number: Int64, winner: Stamp?) throws -> Bool {
    let gone = try connection.rows(
      "SELECT seq, id, tbl, record FROM ferry_operations WHERE seq > ?1 AND kind = 'delete' ORDER BY seq",
      number
    ) { ($0.int64(0), $0.uniqueID(1), RecordKey(table: $0.name(2), record: $0.name(3))) }
    if gone.isEmpty { return false }
    let (schema, device) = (try file.tables.schemas.current(), try file.identity().device)
    let newest = try file.queue.newest(by: device)?.stamp
    for (order, id, key) in gone {
      guard let id, let winner = winner ?? newest else { continue }
      // Edits would win against such a delete, and the row would have no parent.
      if schema.rules(for: key.table).deletes == .deleteWins {
        try connection.run("UPDATE ferry_operations SET base = 0 WHERE seq = ?", order)
      }
      if try file.conflicts.has(anyOf: OperationID(id), on: key) { continue }
      // The times of confirmed writes are not known here.
      let own = try newestPending(of: key, through: number)?.timestamp
      let loser = Stamp(time: own ?? winner.time, device: device)
      try storeLost(
        key, try deletedColumns(order), of: OperationID(id), loser: loser, winner: winner)
    }
    return true
  }

  /// Returns the identifier of the newest pending operation on a record up to a place.
  private func newestPending(of key: RecordKey, through number: Int64) throws -> UniqueID? {
    let id = try connection.first(
      """
      SELECT id FROM ferry_pending WHERE record = ? AND tbl = ? AND seq <= ?
      ORDER BY seq DESC LIMIT 1
      """, key.record, key.table, number
    ) { $0.uniqueID(0) }
    return id ?? nil
  }

  /// Returns the row removed by an own delete.
  private func deletedColumns(_ order: Int64) throws -> [Column] {
    let data = try connection.first("SELECT data FROM ferry_operations WHERE seq = ?", order) {
      Array($0.textBytes(0))
    }
    guard let data, !data.isEmpty else { return [] }
    return try decode(data, depth: file.limits.depth) { (reader) throws(MalformedMessage) in
      try reader.columns(limits: file.limits)
    }
  }

  /// Stores the values of another device's row, deleted because the parent is gone.
  private func storeLost(_ change: Change, _ columns: [Column]) throws {
    let stamps =
      change.state.columns.map(\.stamp) + [change.state.inserted?.stamp].compactMap { $0 }
    guard let loser = stamps.max(),
      let (id, winner) = try file.queue.newest(by: file.identity().device)
    else { return }
    try storeLost(change.key, columns, of: id, loser: loser, winner: winner)
  }

  private func storeLost(
    _ key: RecordKey, _ columns: [Column], of operation: OperationID, loser: Stamp, winner: Stamp
  ) throws {
    try file.conflictLog.store(
      Conflict(column: nil, lost: .null, loser: loser, winner: winner), of: operation, on: key)
    for column in columns where column.value != .null {
      try file.conflictLog.store(
        Conflict(column: column.name, lost: column.value, loser: loser, winner: winner),
        of: operation, on: key)
    }
  }

  /// Returns the number of the last operation.
  func lastOperation() throws -> Int64 {
    try connection.first("SELECT coalesce(max(seq), 0) FROM ferry_operations") { $0.int64(0) } ?? 0
  }
}
