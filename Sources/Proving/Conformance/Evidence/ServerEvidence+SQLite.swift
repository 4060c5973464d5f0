import FerryProtocol
import FerrySQLite

extension ServerEvidence {
  /// Reads one space of the embedded store's file in one snapshot. The read joins the caller's
  /// transaction if there is one.
  ///
  /// - Throws: ``SQLiteError``; ``UnreadableEvidence`` if there is no such space.
  package static func read(
    _ connection: SQLiteConnection, space: SpaceName
  ) throws -> ServerEvidence {
    if connection.isInTransaction { return try readSnapshot(connection, space) }
    return try connection.transaction(.deferred) { try readSnapshot(connection, space) }
  }

  private static func readSnapshot(
    _ connection: SQLiteConnection, _ space: SpaceName
  ) throws -> ServerEvidence {
    let found = try connection.first(
      """
      SELECT id, head, epoch, (SELECT count(*) FROM buffered WHERE space = spaces.id)
      FROM spaces WHERE id = (SELECT id FROM space_names WHERE name = ?)
      """, space.value
    ) { row in
      (
        id: row.int64(0),
        evidence: ServerEvidence(
          head: row.int64(1), epoch: Epoch(UInt64(bitPattern: row.int64(2))), history: [],
          records: [:], buffered: Int(row.int64(3)))
      )
    }
    guard let found else {
      throw UnreadableEvidence("the store has no space \(space)")
    }
    let id = found.id
    let hasPruned = try PrunedHistory.isKept(in: connection)
    var evidence = found.evidence
    evidence.history = try connection.rows(
      """
      SELECT sequence, id, device, tbl, record, kind, time, base, data, times, outcome,
        marks, head, former
      FROM \(PrunedHistory.source(hasPruned: hasPruned)) WHERE space = ?1 AND (sequence <= ?2
        OR (SELECT staging FROM spaces WHERE id = ?1) IS NULL)
      ORDER BY sequence
      """, id, evidence.head
    ) { try entry($0) }
    if hasPruned { evidence.forgotten = try PrunedHistory.forgotten(in: id, connection) }
    try connection.forEach("SELECT tbl, record, state FROM records WHERE space = ?", id) { row in
      let key = RecordKey(table: row.name(0), record: row.recordName(1).name)
      evidence.records[key] = try StoredForm.state(row.blobBytes(2))
    }
    evidence.findColumns()
    return evidence
  }

  private static func entry(_ row: SQLiteStatement) throws -> HistoryEntry {
    guard let id = UniqueID(bytes: row.blobBytes(1)), let device = UniqueID(bytes: row.blobBytes(2))
    else { throw UnreadableEvidence("the history contains a row without identifiers") }
    let kind = try StoredForm.kind(row.int64(5))
    var entry = HistoryEntry(
      sequence: row.int64(0), id: OperationID(id), device: DeviceID(device),
      key: RecordKey(table: row.name(3), record: row.recordName(4).name),
      kind: kind, time: StoredForm.time(row.int64(6)), base: row.int64(7),
      columns: row.isNull(8) ? [] : try StoredForm.columns(row.textBytes(8), of: kind),
      columnTimes: row.isNull(9) ? [:] : try StoredForm.times(row.textBytes(9)),
      outcome: row.isNull(10) ? .applied : try StoredForm.outcome(row.textBytes(10)),
      increments: row.isNull(11) ? [] : try StoredForm.increments(row.textBytes(11)))
    entry.reason = row.isNull(11) ? nil : try StoredForm.reason(row.textBytes(11))
    entry.prunedAt = row.optionalInt64(12)
    entry.hasColumnsElsewhere = kind == .insert && row.isNull(8)
    entry.former = row.isNull(13) ? nil : try StoredForm.columns(row.textBytes(13))
    return entry
  }
}
