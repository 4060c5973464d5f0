import FerryProtocol
import FerrySQLite
import FerryStoredValues

extension SQLiteStoreFile {
  /// Applies, answers or buffers packets durably, unless the matches of their batch operations are
  /// missing. Large ones are written in slices.
  func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, _ matches: BatchMatches,
    room: IngestRoom = .sliced
  ) throws -> IngestAttempt {
    try ingestAtOnce(packets, into: space, now: now, matches, room: room)
      ?? ingestInSlices(packets, into: space, now: now, matches, room: room)
  }

  /// Does the same in one short transaction. Returns `nil`, and changes nothing, if this would take
  /// more than a slice.
  func ingestAtOnce(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, _ matches: BatchMatches,
    room: IngestRoom
  ) throws -> IngestAttempt? {
    guard slice.admits(packets, matches) else { return nil }
    let room = IngestRoom(
      bytes: min(room.bytes, slice.bytes),
      allowsSlices: room.allowsSlices || room.bytes > slice.bytes)
    do {
      return try change(space) {
        var context = try context(for: packets, in: space, now: now, room)
        let before = context.space.head
        try bound(packets, in: context)
        let effects = try decide(packets, in: &context, of: space, matches)
        try save(effects, in: space, now: now)
        return .done(before: before, effects.batch)
      }
    } catch let wanted as BatchesToMatch {
      return .needsMatches(wanted)
    } catch is TooLargeForSlice {
      return nil
    } catch is SpaceUnsettled {
      return nil
    }
  }

  private func decide(
    _ packets: [IncomingPacket], in context: inout IngestContext, of space: Int64,
    _ matches: BatchMatches
  ) throws -> IngestEffects {
    var rounds = 1
    return try Ingest.decide(packets, in: &context) { need, context in
      if case .bodies(let keys) = need, !slice.admits(keys, of: context.buffered) {
        throw TooLargeForSlice()
      }
      if case .nothing = need { rounds += 1 }
      try load(need, of: packets.count, in: space, matches, into: &context)
      try bound(packets, in: context, rounds: rounds)
    }
  }

  /// Throws if a decision about packets, and about the loaded buffered ones, takes more than a
  /// slice.
  private func bound(
    _ packets: [IncomingPacket], in context: IngestContext, rounds: Int = 1
  ) throws {
    guard !context.isSliced, slice.admits(context.bodies.values),
      slice.admits(packets, in: context, rounds: rounds)
    else { throw TooLargeForSlice() }
  }

  // MARK: Loading

  /// Loads data missing for a decision about packets.
  func load(
    _ need: IngestNeed, of count: Int, in space: Int64, _ matches: BatchMatches,
    into context: inout IngestContext
  ) throws {
    switch need {
    case .bodies(let keys):
      let bodies = try bodies(of: keys, in: space)
      try load(keys.compactMap { bodies[$0] }, in: space, into: &context)
      try context.boundStates(of: count)
      context.bodies.merge(bodies) { _, new in new }
    case .holders(let claims):
      for (claim, record) in try holders(of: claims, in: space) {
        context.holders[claim] = record
      }
    case .matches(let matcher): try match(matcher, matches, of: count, in: space, &context)
    case .nothing: break
    }
  }

  /// Returns the state of a space without an unfinished large packet.
  ///
  /// - Parameter staging: The caller's own rows behind the head, if there are any.
  /// - Throws: `SpaceUnsettled` if the space has other rows behind the head, or replaced ones.
  func spaceState(_ space: Int64, staging: StagingState? = nil) throws -> SpaceState {
    let state = try connection.first(
      """
      SELECT epoch, head, clock, newest, schema_version, minimum_protocol, retention_horizon,
        history_hash, timeline, staging, overlap
      FROM spaces WHERE id = ?
      """, space
    ) { row in
      guard row.optionalInt64(9) == staging?.rawValue, row.isNull(10) else {
        throw SpaceUnsettled()
      }
      return SpaceState(
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

  /// Loads everything needed at first for a decision about packets.
  func context(
    for incoming: [IncomingPacket], in space: Int64, now: Int64, _ room: IngestRoom
  ) throws -> IngestContext {
    var context = try frame(of: incoming, in: space, now: now, room)
    try load(incoming.map(\.packet), in: space, into: &context)
    try context.boundStates(of: incoming.count)
    for case let anchor? in incoming.map(\.cursor?.anchor) {
      context.known[anchor.operation] = try known(anchor.operation, in: space)
    }
    return context
  }

  /// Loads the part of a context with neither records nor the history. They change only together
  /// with the head, or are removed behind the retention horizon.
  ///
  /// - Parameter staging: The caller's own rows behind the head, if there are any.
  func frame(
    of incoming: [IncomingPacket], in space: Int64, now: Int64, _ room: IngestRoom,
    staging: StagingState? = nil
  ) throws -> IngestContext {
    let packets = incoming.map(\.packet)
    let state = try spaceState(space, staging: staging)
    var context = IngestContext(
      space: state, now: now, limits: limits, quotas: quotas, room: room)
    context.schema = try schemas.schema(of: space, state) {
      try SpaceSchema(stored: record(SchemaChange.key, in: space))
    }
    if incoming.contains(where: \.needsOpenServer) {
      context.hasHadTokens = try hasEverHadTokens()
    }
    // In one order: the waiting packets are compared with those of another frame.
    let devices = Set(packets.map(\.device)).sorted()
    for found in try known(devices, in: space) {
      (context.owners[found.device], context.chains[found.device]) = (found.owner, found.chain)
    }
    for device in devices { context.buffered += try bufferedPackets(of: device, in: space) }
    let usage = UsageNames(incoming)
    _ = try rows(IngestQueries.usage, [.integer(space)], of: usage.keys) {
      try usage.read($0, $1, into: &context)
    }
    context.timelineEnds = try ends(
      of: incoming.compactMap { $0.cursor?.timeline(before: state.retentionHorizon) }, in: space)
    return context
  }

  /// Loads the entries of the history and of the records for these packets.
  private func load(
    _ packets: [Packet], in space: Int64, into context: inout IngestContext
  ) throws {
    try loadTables(of: packets, in: space, into: &context)
    try loadColumns(of: packets, in: space, into: &context)
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

  /// Loads the names of the space's tables if the packets write to a table without records.
  private func loadTables(
    of packets: [Packet], in space: Int64, into context: inout IngestContext
  ) throws {
    guard context.tables == nil else { return }
    let find = try connection.statement(
      "SELECT 1 FROM record_rows WHERE space = ? AND tbl = ? LIMIT 1")
    let isKnown = try packets.writtenTables.allSatisfy { table in
      try find.first(space, table) { _ in true } ?? false
    }
    if isKnown { return }
    // One look-up for each table, whatever the number of records.
    context.tables = Set(
      try connection.rows(
        """
        WITH RECURSIVE found(name) AS (
          SELECT min(tbl) FROM record_rows WHERE space = ?1
          UNION ALL SELECT (
            SELECT min(tbl) FROM record_rows WHERE space = ?1 AND tbl > name) FROM found WHERE name IS NOT NULL)
        SELECT name FROM found WHERE name IS NOT NULL LIMIT ?2
        """, space, context.tablesLoadedMax
      ) { $0.name(0) })
  }

  /// Loads the columns written by the packets that their tables lack.
  private func loadColumns(
    of packets: [Packet], in space: Int64, into context: inout IngestContext
  ) throws {
    let columns = WrittenColumns(packets.writtenColumns)
    let found = try rows(IngestQueries.columns, [.integer(space)], of: columns.keys) {
      place, _ in place
    }
    try columns.load(besides: found, in: space, into: &context, on: self)
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

  /// - Parameter room: Bytes of large outcomes to load; reduced by this one.
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

  /// Loads a record's size, and the state if there is room for it.
  ///
  /// - Parameter room: Bytes of states still to load; reduced by this one.
  func loadRecord(
    _ key: RecordKey, in space: Int64, room: inout Int, into context: inout IngestContext
  ) throws {
    if context.recordBytes[key] != nil { return }
    try connection.first(
      """
      SELECT length(state), CASE WHEN length(state) <= ? THEN state END FROM record_rows
      WHERE space = ? AND tbl = ? AND record = ?
      """, room, space, key.table, StoredRecordName(key.record)
    ) { row in
      context.recordBytes[key] = Int(row.int64(0))
      room -= Int(row.int64(0))
      if row.isNull(1) { return }
      context.records[key] = try RecordState(stored: row.blobBytes(1), limits: .stored)
    }
  }
}
