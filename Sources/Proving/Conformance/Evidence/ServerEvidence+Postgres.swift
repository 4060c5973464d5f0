import FerryPostgres
import FerryProtocol

extension ServerEvidence {
  /// Reads one space of a PostgreSQL store in one snapshot. Blocks.
  ///
  /// - Throws: ``PostgresError``; ``UnreadableEvidence`` if there is no such space.
  package static func read(
    _ connection: PostgresConnection, space: SpaceName
  ) throws -> ServerEvidence {
    try connection.transaction(.snapshot) { connection in
      let spaces = try connection.query(
        .once(
          """
          SELECT id, head, epoch, (SELECT count(*) FROM buffered WHERE space = spaces.id)
          FROM spaces WHERE id = (SELECT id FROM space_names WHERE name = $1)
          """), [.text(space.value)])
      guard let row = spaces.first else {
        throw UnreadableEvidence("the store has no space \(space)")
      }
      var evidence = ServerEvidence(
        head: try row.int8(1), epoch: Epoch(UInt64(bitPattern: try row.int8(2))), history: [],
        records: [:], buffered: Int(try row.int8(3)))
      let id = try row.int8(0)
      let hasPruned = try PrunedHistory.isKept(in: connection)
      let operations = try connection.query(
        .once(
          """
          SELECT sequence, id, device, tbl, record, kind, "time", base, data, times, outcome,
            marks, head, former
          FROM \(PrunedHistory.source(hasPruned: hasPruned)) WHERE space = $1 ORDER BY sequence
          """), [.int8(id)])
      evidence.history = try operations.map { try entry($0) }
      if hasPruned { evidence.forgotten = try PrunedHistory.forgotten(in: id, connection) }
      let records = try connection.query(
        .once("SELECT tbl, record, state FROM records WHERE space = $1"), [.int8(id)])
      for row in records {
        let key = try row.recordKey(0, 1)
        evidence.records[key] = try row.bytes(2) { try StoredForm.state($0) }
      }
      evidence.findColumns()
      return evidence
    }
  }

  private static func entry(_ row: PostgresRow) throws -> HistoryEntry {
    guard let id = UniqueID(row, 1), let device = UniqueID(row, 2) else {
      throw UnreadableEvidence("the history contains a row without identifiers")
    }
    let kind = try StoredForm.kind(Int64(try row.int2(5)))
    var entry = HistoryEntry(
      sequence: try row.int8(0), id: OperationID(id), device: DeviceID(device),
      key: try row.recordKey(3, 4),
      kind: kind, time: StoredForm.time(try row.int8(6)), base: try row.int8(7),
      columns: row.isNull(8) ? [] : try row.bytes(8) { try StoredForm.columns($0, of: kind) },
      columnTimes: row.isNull(9) ? [:] : try row.bytes(9) { try StoredForm.times($0) },
      outcome: row.isNull(10) ? .applied : try row.bytes(10) { try StoredForm.outcome($0) },
      increments: row.isNull(11) ? [] : try row.bytes(11) { try StoredForm.increments($0) })
    entry.reason = row.isNull(11) ? nil : try row.bytes(11) { try StoredForm.reason($0) }
    entry.prunedAt = row.isNull(12) ? nil : try row.int8(12)
    entry.hasColumnsElsewhere = kind == .insert && row.isNull(8)
    entry.former = row.isNull(13) ? nil : try row.bytes(13) { try StoredForm.columns($0) }
    return entry
  }
}

extension PostgresRow {
  /// Reads a table's name and a record's identifier from a server's table.
  func recordKey(_ table: Int, _ record: Int) throws -> RecordKey {
    RecordKey(
      table: Name(try text(table)),
      record: try bytes(record) { StoredRecordName(bytes: $0) }.name)
  }
}

extension UniqueID {
  fileprivate init?(_ row: PostgresRow, _ column: Int) {
    guard let bytes = try? row.uuidBytes(column) else { return nil }
    guard let id = bytes.withUnsafeBytes({ UniqueID(bytes: $0) }) else { return nil }
    self = id
  }
}
