import FerryProtocol
import FerrySQLite
import FerryStoredValues

extension SQLiteStoreFile {
  /// Applies, answers or buffers packets in one durable transaction, unless the matches of their
  /// batch operations are missing.
  func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, _ matches: BatchMatches,
    room: IngestRoom = .sliced
  ) throws -> IngestAttempt {
    let before = try head(of: space)
    do {
      return .done(
        before: before,
        try IngestRestart.repeated {
          try apply(packets, to: space, now: now, matches, from: $0, room)
        })
    } catch let wanted as BatchesToMatch {
      return .needsMatches(wanted)
    }
  }

  private func apply(
    _ packets: [IncomingPacket], to space: Int64, now: Int64, _ matches: BatchMatches,
    from start: IngestRestart, _ room: IngestRoom
  ) throws -> IngestBatch {
    try change(space) {
      var context = try context(for: packets, in: space, now: now, room)
      let effects = try decide(
        packets, in: &context, of: space, matches, from: start,
        SQLiteSlices(file: self, space: space))
      try save(effects, in: space, now: now)
      return effects.batch
    }
  }

  /// Decides about packets in a context that was loaded in this transaction.
  func decide(
    _ packets: [IncomingPacket], in context: inout IngestContext, of space: Int64,
    _ matches: BatchMatches, from start: IngestRestart, _ slices: any IngestSlices
  ) throws -> IngestEffects {
    try Ingest.decide(packets, in: &context, from: start, slices: slices) { need, context in
      try load(need, of: packets.count, in: space, matches, into: &context)
    }
  }

  // MARK: Loading

  private func load(
    _ need: IngestNeed, of count: Int, in space: Int64, _ matches: BatchMatches,
    into context: inout IngestContext
  ) throws {
    switch need {
    case .bodies(let keys):
      let bodies = try bodies(of: keys, in: space)
      try load(bodies.values.map { $0 }, in: space, into: &context)
      try context.boundStates(of: count)
      context.bodies.merge(bodies) { _, new in new }
    case .holders(let claims):
      for claim in claims {
        if let record = try holder(of: claim, in: space) { context.holders[claim] = record }
      }
    case .matches(let matcher): try match(matcher, matches, of: count, in: space, &context)
    }
  }

  func spaceState(_ space: Int64) throws -> SpaceState {
    let state = try connection.first(
      """
      SELECT epoch, head, clock, newest, schema_version, minimum_protocol, retention_horizon,
        history_hash, timeline
      FROM spaces WHERE id = ?
      """, space
    ) { row in
      SpaceState(
        epoch: Epoch(UInt64(bitPattern: row.int64(0))), head: row.int64(1),
        newest: row.uniqueID(3).map(OperationID.init),
        historyHash: UInt64(bitPattern: row.int64(7)),
        clock: HybridTimestamp(rawValue: UInt64(bitPattern: row.int64(2))),
        schemaVersion: row.int64(4), minimumProtocol: Int(row.int64(5)),
        retentionHorizon: row.int64(6), timeline: row.timeline(8))
    }
    guard var state else { throw StoreError.spaceGone }
    state.nextTimeline = timelines.next(in: space, head: state.head)
    return state
  }

  /// Loads everything that a decision about packets needs at first.
  func context(
    for incoming: [IncomingPacket], in space: Int64, now: Int64, _ room: IngestRoom
  ) throws -> IngestContext {
    let packets = incoming.map(\.packet)
    let state = try spaceState(space)
    var context = IngestContext(
      space: state, now: now, limits: limits, quotas: quotas, room: room)
    context.schema = try schemas.schema(of: space, state) {
      try SpaceSchema(stored: record(SchemaChange.key, in: space))
    }
    if incoming.contains(where: \.needsOpenServer) {
      context.hasHadTokens = try hasEverHadTokens()
    }
    for device in Set(packets.map(\.device)) {
      let known = try self.device(device, in: space)
      (context.owners[device], context.chains[device]) = (known?.owner, known?.chain)
      context.buffered += try bufferedPackets(of: device, in: space)
    }
    try loadUsage(of: incoming.map(\.principal.account), in: space, into: &context)
    try load(packets, in: space, into: &context)
    try context.boundStates(of: incoming.count)
    for case let cursor? in incoming.map(\.cursor) {
      if let anchor = cursor.anchor {
        context.known[anchor.operation] = try self.known(anchor.operation, in: space)
      }
      if let timeline = cursor.timeline(before: context.space.retentionHorizon) {
        context.timelineEnds[timeline] = try end(of: timeline, in: space)
      }
    }
    return context
  }

  /// Loads the entries of the history and of the records for these packets.
  private func load(
    _ packets: [Packet], in space: Int64, into context: inout IngestContext
  ) throws {
    try loadTables(of: packets, in: space, into: &context)
    var (room, quotes) = (context.roomForStates(of: []), limits.pageBytes)
    for packet in packets {
      for operation in packet.operations {
        context.known[operation.id] = try known(operation.id, in: space, quoting: &quotes)
        try loadRecord(operation.key, in: space, room: &room, into: &context)
      }
      if let dependency = packet.dependency {
        context.known[dependency] = try known(dependency, in: space, quoting: &quotes)
      }
    }
  }

  /// Loads the names of the space's tables if the packets write to one that has no record.
  private func loadTables(
    of packets: [Packet], in space: Int64, into context: inout IngestContext
  ) throws {
    guard context.tables == nil else { return }
    let find = try connection.statement(
      "SELECT 1 FROM records WHERE space = ? AND tbl = ? LIMIT 1")
    let isKnown = try packets.writtenTables.allSatisfy { table in
      try find.first(space, table) { _ in true } ?? false
    }
    if isKnown { return }
    // One look-up for each table, whatever the number of records.
    context.tables = Set(
      try connection.rows(
        """
        WITH RECURSIVE found(name) AS (
          SELECT min(tbl) FROM records WHERE space = ?1
          UNION ALL SELECT (SELECT min(tbl) FROM records WHERE space = ?1 AND tbl > name)
            FROM found WHERE name IS NOT NULL)
        SELECT name FROM found WHERE name IS NOT NULL LIMIT ?2
        """, space, context.tablesLoadedMax
      ) { $0.name(0) })
  }

  /// Returns the user of a device, its progress and its name; `nil` if no packet of it was taken.
  func device(
    _ device: DeviceID, in space: Int64
  ) throws -> (owner: Principal, chain: DeviceChain?, name: DeviceName?)? {
    try connection.first(
      """
      SELECT principal, tail, recent, operations, trimmed, name FROM devices
      WHERE space = ? AND device = ?
      """, space, device.value
    ) { row in
      let chain = row.uniqueID(1).map {
        DeviceChain(
          tail: OperationID($0), recentBytes: row.blobBytes(2), operations: row.int64(3),
          isTrimmed: row.int64(4) != 0)
      }
      return (
        Principal(row.text(0)) ?? .anonymous, chain, DeviceName(stored: row.optionalText(5))
      )
    }
  }

  private func bufferedPackets(of device: DeviceID, in space: Int64) throws -> [BufferedPacket] {
    try connection.rows(
      """
      SELECT tail, dependency, continues, bytes, role FROM buffered WHERE space = ? AND device = ?
      ORDER BY rowid
      """, space, device.value
    ) { row in
      row.uniqueID(0).map {
        BufferedPacket(
          key: BufferedKey(device: device, tail: OperationID($0)),
          dependency: row.uniqueID(1).map(OperationID.init), continues: row.int64(2) != 0,
          byteCount: Int(row.int64(3)), role: Role(rawValue: row.text(4)) ?? .reader)
      }
    }.compactMap { $0 }
  }

  func known(_ id: OperationID, in space: Int64) throws -> KnownOperation? {
    var room = 0
    return try known(id, in: space, quoting: &room)
  }

  /// - Parameter room: Bytes of large outcomes that are loaded; reduced by this one.
  private func known(
    _ id: OperationID, in space: Int64, quoting room: inout Int
  ) throws -> KnownOperation? {
    try connection.first(
      "SELECT sequence, device, outcome, history_hash FROM operations WHERE space = ? AND id = ?",
      space, id.value
    ) { row in
      let bytes = row.textBytes(2)
      room -= bytes.count
      let isQuoted = room >= 0 || bytes.count <= KnownOperation.smallOutcome
      let outcome =
        try row.isNull(2) ? .applied : isQuoted ? Outcome(stored: bytes) : .unquoted
      return row.uniqueID(1).map {
        KnownOperation(
          sequence: row.int64(0), device: DeviceID($0), outcome: outcome,
          historyHash: UInt64(bitPattern: row.int64(3)))
      }
    } ?? nil
  }

  private func bodies(of keys: [BufferedKey], in space: Int64) throws -> [BufferedKey: Packet] {
    var bodies: [BufferedKey: Packet] = [:]
    let find = try connection.statement(
      "SELECT body FROM buffered WHERE space = ? AND device = ? AND tail = ?")
    for key in keys {
      bodies[key] = try find.first(space, key.device.value, key.tail.value) {
        try Packet(decoding: $0.blob(0), limits: .stored)
      }
      guard bodies[key] != nil else { throw StoreError.failed("a buffered packet is missing") }
    }
    return bodies
  }

  func record(_ key: RecordKey, in space: Int64) throws -> RecordState? {
    try connection.first(
      "SELECT state FROM records WHERE space = ? AND tbl = ? AND record = ?", space, key.table,
      StoredRecordName(key.record)
    ) { try RecordState(stored: $0.blobBytes(0), limits: .stored) }
  }

  /// Loads a record's size, and its state if there is room for it.
  ///
  /// - Parameter room: Bytes of states that are still loaded; reduced by this one.
  func loadRecord(
    _ key: RecordKey, in space: Int64, room: inout Int, into context: inout IngestContext
  ) throws {
    if context.recordBytes[key] != nil { return }
    try connection.first(
      """
      SELECT length(state), CASE WHEN length(state) <= ? THEN state END FROM records
      WHERE space = ? AND tbl = ? AND record = ?
      """, room, space, key.table, StoredRecordName(key.record)
    ) { row in
      context.recordBytes[key] = Int(row.int64(0))
      room -= Int(row.int64(0))
      if row.isNull(1) { return }
      context.records[key] = try RecordState(stored: row.blobBytes(1), limits: .stored)
    }
  }

  // MARK: Saving

  func save(_ effects: IngestEffects, in space: Int64, now: Int64) throws {
    guard !effects.isEmpty else { return }
    try save(slice: effects, in: space)
    try saveOwners(effects.owners, in: space, now: now)
    try saveChains(effects.chains, in: space, now: now)
    try saveUsage(effects, in: space)
    try saveBuffer(effects, in: space, now: now)
    try saveClaims(effects.claims, in: space)
    try saveTimeline(effects.space, in: space)
    try connection.run(
      """
      UPDATE spaces SET head = ?, clock = ?, newest = ?, history_hash = ?, timeline = ?
      WHERE id = ?
      """,
      effects.space.head, effects.space.clock.rawValue, effects.space.newest?.value,
      effects.space.historyHash, effects.space.timeline?.value, space)
    unsettled = effects.space
  }

  /// Writes the operations, records and notices.
  func save(slice effects: IngestEffects, in space: Int64) throws {
    try saveOperations(effects.operations, in: space)
    try saveRecords(effects.records, in: space)
    try saveNotices(effects.notices, in: space)
  }

  private func saveOperations(
    _ operations: [IngestEffects.OperationRow], in space: Int64
  ) throws {
    let insert = try connection.statement(
      """
      INSERT INTO operations(space, id, sequence, device, tbl, record, kind, time, base, data,
        times, outcome, history_hash, marks, former)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    for row in operations { try insert.run(space, row) }
  }

  private func saveRecords(_ records: [IngestEffects.RecordRow], in space: Int64) throws {
    let upsert = try connection.statement(
      """
      INSERT INTO records(space, tbl, record, sequence, whole_below, state, dead)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT(space, tbl, record) DO UPDATE SET sequence = excluded.sequence,
        whole_below = excluded.whole_below, state = excluded.state, dead = excluded.dead
      """)
    for row in records { try upsert.run(space, row) }
  }

  private func saveChains(
    _ chains: [DeviceID: DeviceChain], in space: Int64, now: Int64
  ) throws {
    let upsert = try connection.statement(
      """
      INSERT INTO devices(space, device, tail, recent, operations, seen_at)
      VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT(space, device) DO UPDATE SET tail = excluded.tail, recent = excluded.recent,
        operations = excluded.operations, seen_at = max(seen_at, excluded.seen_at)
      """)
    for (device, chain) in chains {
      try upsert.run(
        space, device.value, chain.tail.value, chain.recentBytes, chain.operations, now)
    }
  }

  private func saveBuffer(_ effects: IngestEffects, in space: Int64, now: Int64) throws {
    let remove = try connection.statement(
      "DELETE FROM buffered WHERE space = ? AND device = ? AND tail = ?")
    for key in effects.unbuffered { try remove.run(space, key.device.value, key.tail.value) }
    let insert = try connection.statement(
      """
      INSERT INTO buffered(space, device, tail, dependency, continues, bytes, body, arrived_at, role)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    for row in effects.buffered {
      try insert.run(
        space, row.packet.key.device.value, row.packet.key.tail.value, row.packet.dependency?.value,
        row.packet.continues, row.packet.byteCount, row.body, now, row.packet.role.rawValue)
    }
  }
}

/// Binds the columns of `operations` after the space: most rows that a server writes.
extension IngestEffects.OperationRow: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) {
    parameters.append(id)
    parameters.append(sequence)
    parameters.append(device)
    parameters.append(key.table)
    parameters.append(StoredRecordName(key.record))
    parameters.append(Int64(kind.storedCode))
    parameters.append(time.rawValue)
    parameters.append(base)
    parameters.append(data.map(SQLiteText.init))
    parameters.append(times.map(SQLiteText.init))
    parameters.append(outcome.map(SQLiteText.init))
    parameters.append(historyHash)
    parameters.append(marks.map(SQLiteText.init))
    parameters.append(former.map(SQLiteText.init))
  }
}

/// Binds the columns of `records` after the space.
extension IngestEffects.RecordRow: SQLiteBindable {
  @usableFromInline
  package func bind(to parameters: inout SQLiteParameters) {
    parameters.append(key.table)
    parameters.append(StoredRecordName(key.record))
    parameters.append(sequence)
    parameters.append(wholeBelow)
    parameters.append(state)
    parameters.append(isDead)
  }
}
