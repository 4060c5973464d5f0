import FerryProtocol
import SQLite

extension SQLiteStoreFile {
  /// Applies, answers or buffers packets in one durable transaction, unless the matches of their
  /// batch operations are missing.
  func ingest(
    _ packets: [IncomingPacket], into space: Int64, now: Int64, _ matches: BatchMatches
  ) throws -> IngestAttempt {
    let before = try head(of: space)
    do {
      return .done(
        before: before, try apply(packets, to: space, now: now, matches))
    } catch let wanted as BatchesToMatch {
      return .needsMatches(wanted)
    }
  }

  private func apply(
    _ packets: [IncomingPacket], to space: Int64, now: Int64, _ matches: BatchMatches
  ) throws -> IngestBatch {
    try change(space) {
      var context = try context(for: packets, in: space, now: now)
      for case let cursor? in packets.map(\.cursor) {
        if let anchor = cursor.anchor {
          context.known[anchor.operation] = try known(anchor.operation, in: space)
        }
        if let timeline = cursor.timeline(before: context.space.floor) {
          context.timelineEnds[timeline] = try end(of: timeline, in: space)
        }
      }
      let effects = try Ingest.decide(packets, in: &context) { need, context in
        try load(need, of: packets.count, in: space, matches, into: &context)
      }
      try save(effects, in: space, now: now)
      return effects.batch
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
      try context.refuseIfStatesLack(count)
      context.bodies.merge(bodies) { _, new in new }
    case .holders(let claims):
      for claim in claims {
        if let record = try holder(of: claim, in: space) { context.holders[claim] = record }
      }
    case .matches(let matcher): try match(matcher, matches, in: space, &context)
    }
  }

  func spaceState(_ space: Int64) throws -> SpaceState {
    let head =
      PlantedFault.headBeforeChanges.isPlanted
      ? "coalesce((SELECT max(sequence) FROM operations WHERE space = spaces.id), 0)" : "head"
    let find = try connection.statement(
      """
      SELECT epoch, \(head), clock, newest, schema_version, minimum_protocol, floor, print, timeline
      FROM spaces WHERE id = ?
      """)
    find.bind(1, space)
    let state = try find.first { row in
      SpaceState(
        epoch: Epoch(UInt64(bitPattern: row.int64(0))), head: row.int64(1),
        newest: row.uniqueID(3).map(OperationID.init), print: UInt64(bitPattern: row.int64(7)),
        clock: HybridTimestamp(rawValue: UInt64(bitPattern: row.int64(2))),
        schemaVersion: row.int64(4), minimumProtocol: Int(row.int64(5)),
        floor: row.int64(6), timeline: row.timeline(8))
    }
    guard var state else { throw StoreError.failed("the space is gone") }
    state.nextTimeline = timelines.next(in: space, head: state.head)
    return state
  }

  private func context(
    for incoming: [IncomingPacket], in space: Int64, now: Int64
  ) throws -> IngestContext {
    let packets = incoming.map(\.packet)
    let state = try spaceState(space)
    var context = IngestContext(space: state, now: now, limits: limits, quotas: quotas)
    context.schema = try schemas.schema(of: space, state) {
      try SpaceSchema(stored: record(SchemaChange.key, in: space))
    }
    for device in Set(packets.map(\.device)) {
      let known = try self.device(device, in: space)
      (context.owners[device], context.chains[device]) = (known?.owner, known?.chain)
      context.buffered += try bufferedPackets(of: device, in: space)
    }
    try loadUsage(of: incoming.map(\.principal), in: space, into: &context)
    try load(packets, in: space, into: &context)
    try context.refuseIfStatesLack(incoming.count)
    return context
  }

  /// Loads the entries of the history and of the records for these packets.
  private func load(
    _ packets: [Packet], in space: Int64, into context: inout IngestContext
  ) throws {
    var room = limits.packetStateBytes
    for packet in packets {
      for operation in packet.operations {
        context.known[operation.id] = try known(operation.id, in: space)
        if context.records[operation.key] == nil, !context.lacksStates {
          try loadRecord(operation.key, in: space, room: room, into: &context)
          room -= context.recordBytes[operation.key] ?? 0
        }
      }
      if let dependency = packet.dependency {
        context.known[dependency] = try known(dependency, in: space)
      }
    }
  }

  /// Returns the user of a device, and its progress; `nil` if no packet of it was taken.
  func device(
    _ device: DeviceID, in space: Int64
  ) throws -> (owner: Principal, chain: DeviceChain?)? {
    let find = try connection.statement(
      """
      SELECT principal, tail, recent, operations, trimmed FROM devices
      WHERE space = ? AND device = ?
      """)
    find.bind(1, space)
    find.bind(2, device.value)
    return try find.first { row in
      let chain = row.uniqueID(1).map {
        DeviceChain(
          tail: OperationID($0), recentBytes: row.blobBytes(2), operations: row.int64(3),
          isTrimmed: row.int64(4) != 0)
      }
      return (Principal(row.text(0)) ?? .anonymous, chain)
    }
  }

  private func bufferedPackets(of device: DeviceID, in space: Int64) throws -> [BufferedPacket] {
    let find = try connection.statement(
      """
      SELECT tail, dependency, continues, bytes, role FROM buffered WHERE space = ? AND device = ?
      ORDER BY rowid
      """)
    find.bind(1, space)
    find.bind(2, device.value)
    return try find.map { row in
      row.uniqueID(0).map {
        BufferedPacket(
          key: BufferedKey(device: device, tail: OperationID($0)),
          dependency: row.uniqueID(1).map(OperationID.init), continues: row.int64(2) != 0,
          byteCount: Int(row.int64(3)), role: Role(rawValue: row.text(4)) ?? .reader)
      }
    }.compactMap { $0 }
  }

  func known(_ id: OperationID, in space: Int64) throws -> KnownOperation? {
    let find = try connection.statement(
      "SELECT sequence, device, outcome, print FROM operations WHERE space = ? AND id = ?")
    find.bind(1, space)
    find.bind(2, id.value)
    return try find.first { row in
      let outcome = try row.isNull(2) ? Outcome.applied : Outcome(stored: row.textBytes(2))
      return row.uniqueID(1).map {
        KnownOperation(
          sequence: row.int64(0), device: DeviceID($0), outcome: outcome,
          print: row.optionalInt64(3).map(UInt64.init(bitPattern:)))
      }
    } ?? nil
  }

  private func bodies(of keys: [BufferedKey], in space: Int64) throws -> [BufferedKey: Packet] {
    var bodies: [BufferedKey: Packet] = [:]
    let find = try connection.statement(
      "SELECT body FROM buffered WHERE space = ? AND device = ? AND tail = ?")
    for key in keys {
      find.bind(1, space)
      find.bind(2, key.device.value)
      find.bind(3, key.tail.value)
      bodies[key] = try find.first { try Packet(decoding: $0.blob(0), limits: .stored) }
      guard bodies[key] != nil else { throw StoreError.failed("a buffered packet is gone") }
    }
    return bodies
  }

  func record(_ key: RecordKey, in space: Int64) throws -> RecordState? {
    let find = try connection.statement(
      "SELECT state FROM records WHERE space = ? AND tbl = ? AND record = ?")
    find.bind(1, space)
    find.bind(2, key.table)
    find.bind(3, key.record)
    return try find.first { try RecordState(decoding: $0.textBytes(0), limits: .stored) }
  }

  /// - Parameter room: Bytes that the state may have; a larger one is left out.
  func loadRecord(
    _ key: RecordKey, in space: Int64, room: Int = .max, into context: inout IngestContext
  ) throws {
    let find = try connection.statement(
      "SELECT state FROM records WHERE space = ? AND tbl = ? AND record = ?")
    find.bind(1, space)
    find.bind(2, key.table)
    find.bind(3, key.record)
    let found = try find.first { row -> (RecordState, Int)? in
      let bytes = row.textBytes(0)
      if bytes.count > room { return nil }
      return (try RecordState(decoding: bytes, limits: .stored), bytes.count)
    }
    switch found {
    case .some(.some(let (state, bytes))):
      (context.records[key], context.recordBytes[key]) = (state, bytes)
    case .some(.none): context.lacksStates = true
    case .none: break
    }
  }

  // MARK: Saving

  func save(_ effects: IngestEffects, in space: Int64, now: Int64) throws {
    guard !effects.isEmpty else { return }
    try saveOperations(effects.operations, in: space)
    try saveRecords(effects.records, in: space)
    try saveOwners(effects.owners, in: space, now: now)
    try saveChains(effects.chains, in: space, now: now)
    try saveUsage(effects, in: space)
    try saveBuffer(effects, in: space, now: now)
    try saveNotices(effects.notices, in: space)
    try saveClaims(effects.claims, in: space)
    try saveTimeline(effects.space, in: space)
    let head = try connection.statement(
      "UPDATE spaces SET head = ?, clock = ?, newest = ?, print = ?, timeline = ? WHERE id = ?")
    head.bind(1, effects.space.head)
    head.bind(2, Int64(bitPattern: effects.space.clock.rawValue))
    if let newest = effects.space.newest { head.bind(3, newest.value) }
    head.bind(4, Int64(bitPattern: effects.space.print))
    if let timeline = effects.space.timeline { head.bind(5, Int64(bitPattern: timeline.value)) }
    head.bind(6, space)
    try head.run()
    unsettled = effects.space
  }

  private func saveOperations(
    _ operations: [IngestEffects.OperationRow], in space: Int64
  ) throws {
    let insert = try connection.statement(
      """
      INSERT INTO operations(space, id, sequence, device, tbl, record, kind, time, base, data,
        times, outcome, print, marks) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    for row in operations {
      insert.bind(1, space)
      insert.bind(2, row.id.value)
      insert.bind(3, row.sequence)
      insert.bind(4, row.device.value)
      insert.bind(5, row.key.table)
      insert.bind(6, row.key.record)
      insert.bind(7, Int64(row.kind.storedCode))
      insert.bind(8, Int64(bitPattern: row.time.rawValue))
      insert.bind(9, row.base)
      if let data = row.data { insert.bind(10, text: data) }
      if let times = row.times { insert.bind(11, text: times) }
      if let outcome = row.outcome { insert.bind(12, text: outcome) }
      insert.bind(13, Int64(bitPattern: row.print))
      if let marks = row.marks { insert.bind(14, text: marks) }
      try insert.run()
      insert.reset()
    }
  }

  private func saveRecords(_ records: [IngestEffects.RecordRow], in space: Int64) throws {
    let upsert = try connection.statement(
      """
      INSERT INTO records(space, tbl, record, sequence, whole_below, state, dead)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT(space, tbl, record) DO UPDATE SET sequence = excluded.sequence,
        whole_below = excluded.whole_below, state = excluded.state, dead = excluded.dead
      """)
    for row in records {
      upsert.bind(1, space)
      upsert.bind(2, row.key.table)
      upsert.bind(3, row.key.record)
      upsert.bind(4, row.sequence)
      upsert.bind(5, row.wholeBelow)
      upsert.bind(6, text: row.state)
      upsert.bind(7, row.isDead ? 1 : 0)
      try upsert.run()
    }
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
      upsert.bind(1, space)
      upsert.bind(2, device.value)
      upsert.bind(3, chain.tail.value)
      upsert.bind(4, blob: chain.recentBytes)
      upsert.bind(5, chain.operations)
      upsert.bind(6, now)
      try upsert.run()
    }
  }

  private func saveBuffer(_ effects: IngestEffects, in space: Int64, now: Int64) throws {
    let remove = try connection.statement(
      "DELETE FROM buffered WHERE space = ? AND device = ? AND tail = ?")
    for key in effects.unbuffered {
      remove.bind(1, space)
      remove.bind(2, key.device.value)
      remove.bind(3, key.tail.value)
      try remove.run()
    }
    let insert = try connection.statement(
      """
      INSERT INTO buffered(space, device, tail, dependency, continues, bytes, body, arrived_at, role)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    for row in effects.buffered {
      insert.bind(1, space)
      insert.bind(2, row.packet.key.device.value)
      insert.bind(3, row.packet.key.tail.value)
      if let dependency = row.packet.dependency { insert.bind(4, dependency.value) }
      insert.bind(5, row.packet.continues ? 1 : 0)
      insert.bind(6, row.packet.byteCount)
      insert.bind(7, blob: row.body)
      insert.bind(8, now)
      insert.bind(9, row.packet.role.rawValue)
      try insert.run()
      insert.reset()
    }
  }
}
