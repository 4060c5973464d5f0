import FerryProtocol

// The rows that a batch writes, in both stores: all but the operations and the records, which are
// most of the rows and have a statement for each database.
extension IngestEffects {
  /// Returns the writes of everything but the rows of a slice: operations, records and notices.
  func frame(in space: Int64, now: Int64) -> [PlainStep] {
    var writes = deviceWrites(in: space, now: now)
    writes += bufferWrites(in: space, now: now)
    writes += Self.writes(claims, in: space)
    writes += Self.writes(columns, in: space)
    writes.append(stateWrite(of: space))
    writes += TimelineQueries.beginning(of: self.space, in: space)
    return writes + usageWrites(in: space)
  }

  /// Returns the writes of notices.
  static func writes(_ notices: [NoticeRow], in space: Int64) -> [PlainStep] {
    if notices.isEmpty { return [] }
    let rows: [[PlainValue]] = notices.map {
      [.uuid($0.device.value), .integer($0.sequence), .utf8($0.body)]
    }
    return [.many(IngestStatements.notices, [.integer(space)], of: rows)]
  }

  /// Returns the writes of unique keys.
  static func writes(_ claims: [ClaimRow], in space: Int64) -> [PlainStep] {
    var writes: [PlainStep] = []
    for row in claims where row.record == nil {
      writes.append(.one(IngestStatements.freeClaim, [.integer(space)] + row.claim.values))
    }
    let held: [[PlainValue]] = claims.compactMap { row in
      row.record.map { row.claim.values + [.text($0.text)] }
    }
    if !held.isEmpty { writes.append(.many(IngestStatements.claims, [.integer(space)], of: held)) }
    return writes
  }

  /// Returns the writes of new columns of tables.
  static func writes(_ columns: some Sequence<ColumnRow>, in space: Int64) -> [PlainStep] {
    let rows: [[PlainValue]] = columns.map {
      [.text($0.table.text), .text($0.name.text), .flag($0.isDeclared)]
    }
    return rows.isEmpty ? [] : [.many(IngestStatements.columns, [.integer(space)], of: rows)]
  }

  private func deviceWrites(in space: Int64, now: Int64) -> [PlainStep] {
    var writes: [PlainStep] = []
    let shared: [PlainValue] = [.integer(space), .integer(now)]
    let owners: [[PlainValue]] = owners.sorted { $0.key < $1.key }.map {
      [.uuid($0.value), .text($1.id)]
    }
    if !owners.isEmpty { writes.append(.many(IngestStatements.owners, shared, of: owners)) }
    let chains: [[PlainValue]] = chains.sorted { $0.key < $1.key }.map {
      [
        .uuid($0.value), .uuid($1.tail.value), .bytes($1.recentBytes), .integer($1.operations),
      ]
    }
    if !chains.isEmpty { writes.append(.many(IngestStatements.chains, shared, of: chains)) }
    return writes
  }

  private func bufferWrites(in space: Int64, now: Int64) -> [PlainStep] {
    var writes: [PlainStep] = unbuffered.map { key in
      .one(
        IngestStatements.unbuffer,
        [.integer(space), .uuid(key.device.value), .uuid(key.tail.value)])
    }
    writes += buffered.map { row in
      let packet = row.packet
      return .one(
        IngestStatements.buffer,
        [
          .integer(space), .uuid(packet.key.device.value), .uuid(packet.key.tail.value),
          .uuid(packet.dependency?.value), .flag(packet.continues),
          .integer(Int64(packet.byteCount)), .bytes(row.body), .text(packet.role.rawValue),
          .integer(now),
        ])
    }
    return writes
  }

  private func stateWrite(of space: Int64) -> PlainStep {
    .one(
      IngestStatements.space,
      [
        .integer(self.space.head), .integer(Int64(bitPattern: self.space.clock.rawValue)),
        .uuid(self.space.newest?.value), .integer(Int64(bitPattern: self.space.historyHash)),
        .integer(self.space.timeline.map { Int64(bitPattern: $0.value) }), .integer(space),
      ])
  }

  private func usageWrites(in space: Int64) -> [PlainStep] {
    var rows = usage.sorted { $0.key.id < $1.key.id }.map { ($0.key.id, $0.value) }
    if let total { rows.append((Usage.total, total)) }
    if rows.isEmpty { return [] }
    let keys: [[PlainValue]] = rows.map { name, usage in
      [.text(name)] + usage.stored.map { .integer($0) }
    }
    return [.many(IngestStatements.usage, [.integer(space)], of: keys)]
  }
}

extension UniqueClaim {
  /// The table, the columns and their values.
  var values: [PlainValue] { [.text(table.text), .utf8(columns), .utf8(value)] }
}

private enum IngestStatements {
  static let space = PlainStatement(
    "space_save",
    """
    UPDATE spaces SET head = $1, clock = $2, newest = $3, history_hash = $4, timeline = $5
    WHERE id = $6
    """)

  /// A name does not go to another owner.
  static let owners = PlainBatch.insert(
    "owners_save", into: "devices", [.init("device", .uuid), .init("principal", .text)],
    sharing: ["seen_at"],
    "ON CONFLICT (space, device) DO UPDATE SET principal = excluded.principal, name = NULL")

  static let chains = PlainBatch.insert(
    "chains_save", into: "devices",
    [
      .init("device", .uuid), .init("tail", .uuid), .init("recent", .bytes),
      .init("operations", .integer),
    ], sharing: ["seen_at"],
    """
    ON CONFLICT (space, device) DO UPDATE SET tail = excluded.tail, recent = excluded.recent,
      operations = excluded.operations, seen_at = CASE WHEN devices.seen_at > excluded.seen_at
        THEN devices.seen_at ELSE excluded.seen_at END
    """)

  static let unbuffer = PlainStatement(
    "unbuffer", "DELETE FROM buffered WHERE space = $1 AND device = $2 AND tail = $3")

  static let buffer = PlainStatement(
    "buffer",
    """
    INSERT INTO buffered(space, device, tail, dependency, continues, bytes, body, role, arrived_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    """)

  static let freeClaim = PlainStatement(
    "claims_free",
    """
    DELETE FROM unique_keys
    WHERE space = $1 AND tbl = $2 AND key_columns = $3 AND value = $4
    """)

  static let claims = PlainBatch.insert(
    "claims_save", into: "unique_keys",
    [
      .init("tbl", .text), .init("key_columns", .text), .init("value", .text),
      .init("record", .text),
    ],
    "ON CONFLICT (space, tbl, key_columns, value) DO UPDATE SET record = excluded.record")

  static let columns = PlainBatch.insert(
    "columns_save", into: "table_columns",
    [.init("tbl", .text), .init("name", .text), .init("declared", .flag)],
    "ON CONFLICT DO NOTHING")

  static let notices = PlainBatch.insert(
    "notices_save", into: "notices",
    [.init("device", .uuid), .init("sequence", .integer), .init("body", .text)], "")

  static let usage = PlainBatch.insert(
    "usage_save", into: "usage",
    [.init("principal", .text)] + Usage.names.map { .init($0, .integer) },
    """
    ON CONFLICT (space, principal) DO UPDATE SET bytes = excluded.bytes,
      records = excluded.records, devices = excluded.devices, packets = excluded.packets,
      packet_bytes = excluded.packet_bytes, day = excluded.day, written = excluded.written
    """)
}
