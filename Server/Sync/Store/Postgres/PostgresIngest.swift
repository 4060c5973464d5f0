import FerryPostgres
import FerryProtocol
import Foundation

/// Applies one batch of packets in one transaction and two round trips: lock and load; then write
/// and commit. If a quick decision violates a unique key, a second transaction decides it
/// thoroughly (``IngestLookUps``).
struct PostgresIngest {
  let space: Int64
  let limits: Limits
  let quotas: Quotas
  let now: Int64
  let schemas: SchemaCache
  let timelines: OwnTimelines
  let mistaken: MistakenDevices
  let room: IngestRoom

  private var spaceTimelines: PostgresTimelines { PostgresTimelines(space: space, own: timelines) }

  /// Applies the packets, unless the matches of their batch operations are not known yet.
  func run(
    _ packets: [IncomingPacket], _ matches: BatchMatches, on connection: PostgresConnection
  ) throws -> IngestAttempt {
    // A failed transaction takes it from the connection.
    let observer = connection.observer
    do {
      do {
        let isThorough = mistaken.concern(packets, in: space)
        return try apply(packets, matches, isThorough: isThorough, observer, on: connection)
      } catch let error as PostgresError where error.sqlState == "23505" {
        // A unique key: an operation or a record exists that counted as new.
        mistaken.record(packets, in: space)
        return try apply(packets, matches, isThorough: true, observer, on: connection)
      }
    } catch let wanted as BatchesToMatch {
      return .needsMatches(wanted)
    }
  }

  private func apply(
    _ packets: [IncomingPacket], _ matches: BatchMatches, isThorough: Bool,
    _ observer: PostgresObserver?, on connection: PostgresConnection
  ) throws -> IngestAttempt {
    let (before, effects) = try IngestRestart.repeated { start in
      connection.observer = observer
      return try connection.transaction { connection in
        let lookUps = IngestLookUps(packets.map(\.packet), isThorough: isThorough)
        let context = try load(packets, lookUps, on: connection)
        let effects = try decide(
          packets, matches, lookUps, from: start, in: context, on: connection)
        try save(effects, on: connection)
        return (context.space.head, effects)
      }
    }
    timelines.update(effects.space, of: space)
    return .done(before: before, effects.batch)
  }

  /// Decides with a context in which `lookUps` is loaded; if this is not enough, thoroughly.
  private func decide(
    _ packets: [IncomingPacket], _ matches: BatchMatches, _ lookUps: IngestLookUps,
    from start: IngestRestart, in loaded: IngestContext, on connection: PostgresConnection
  ) throws -> IngestEffects {
    // A quick decision must not write anything before it is known to suffice.
    if lookUps.isThorough || !loaded.isSliced,
      lookUps.suffice(for: packets.map(\.packet), in: loaded)
    {
      let effects = try decide(packets, matches, from: start, in: loaded, on: connection)
      if lookUps.suffice(for: effects) { return effects }
    }
    var context = loaded
    try load(
      IngestLookUps(packets.map(\.packet), isThorough: true), for: packets.count, into: &context,
      on: connection)
    return try decide(packets, matches, from: start, in: context, on: connection)
  }

  private func decide(
    _ packets: [IncomingPacket], _ matches: BatchMatches, from start: IngestRestart,
    in loaded: IngestContext, on connection: PostgresConnection
  ) throws -> IngestEffects {
    var context = loaded
    let slices = PostgresSlices(space: space, now: now, connection: connection)
    return try Ingest.decide(packets, in: &context, from: start, slices: slices) {
      need, context in
      switch need {
      case .bodies(let keys):
        try loadBodies(keys, for: packets.count, into: &context, on: connection)
      case .holders(let claims):
        for (claim, record) in try connection.holders(of: claims, in: space) {
          context.holders[claim] = record
        }
      case .matches(let matcher):
        try match(matcher, matches, packets.count, &context, on: connection)
      case .nothing: break
      }
    }
  }

  // MARK: Loading

  // Each look-up goes by a whole key: LATERAL with OFFSET 0 is not turned into anything else. With
  // a join or `id = ANY(…)`, a planner without statistics reads all of a space's rows instead, and
  // a prepared statement keeps this plan.

  private static let buffered = PostgresStatement(
    "buffered",
    """
    SELECT found.device, found.tail, found.dependency, found.continues, found.bytes, found.role
    FROM unnest($2::uuid[]) AS wanted(device) CROSS JOIN LATERAL (
      SELECT * FROM buffered AS p WHERE p.space = $1 AND p.device = wanted.device OFFSET 0
    ) AS found ORDER BY found.arrival
    """)

  private static let known = PostgresStatement(
    "known",
    """
    SELECT found.id, found.sequence, found.device, CASE
        WHEN octet_length(found.outcome) <= \(KnownOperation.smallOutcome)
          OR sum(octet_length(found.outcome)) OVER (ROWS UNBOUNDED PRECEDING) <= $3::bigint
        THEN found.outcome END,
      found.history_hash, found.outcome IS NULL
    FROM unnest($2::uuid[]) AS wanted(id) CROSS JOIN LATERAL (
      SELECT o.id, o.sequence, o.device, o.outcome, o.history_hash FROM operations AS o
      WHERE o.space = $1 AND o.id = wanted.id OFFSET 0
    ) AS found
    """)

  /// The sizes of records, and their states if all of them together have room.
  private static let records = PostgresStatement(
    "records",
    """
    SELECT found.tbl, found.record, octet_length(found.state), CASE
      WHEN sum(octet_length(found.state)) OVER () <= $4::bigint THEN found.state END
    FROM unnest($2::text[], $3::bytea[]) AS wanted(tbl, record)
    CROSS JOIN LATERAL (
      SELECT r.tbl, r.record, r.state FROM records AS r
      WHERE r.space = $1 AND r.tbl = wanted.tbl AND r.record = wanted.record OFFSET 0
    ) AS found
    """)

  private static let present = PostgresStatement(
    "present",
    """
    SELECT found.tbl FROM unnest($2::text[]) AS wanted(tbl) CROSS JOIN LATERAL (
      SELECT r.tbl FROM records AS r WHERE r.space = $1 AND r.tbl = wanted.tbl
      ORDER BY r.record LIMIT 1
    ) AS found
    """)

  /// The names of the space's tables: one look-up for each, whatever the number of records.
  private static let tables = PostgresStatement(
    "tables",
    """
    WITH RECURSIVE found(name) AS (
      (SELECT tbl FROM records WHERE space = $1 ORDER BY tbl, record LIMIT 1)
      UNION ALL SELECT later.tbl FROM found CROSS JOIN LATERAL (
        SELECT r.tbl FROM records AS r WHERE r.space = $1 AND r.tbl > found.name
        ORDER BY r.tbl, r.record LIMIT 1
      ) AS later)
    SELECT name FROM found LIMIT $2
    """)

  private func load(
    _ incoming: [IncomingPacket], _ lookUps: IngestLookUps, on connection: PostgresConnection
  ) throws -> IngestContext {
    let anchors = incoming.compactMap { $0.cursor?.anchor?.operation }
    let needsOpenServer = incoming.contains(where: \.needsOpenServer)
    let (devices, usage) = (Set(incoming.map(\.packet.device)).sorted(), UsageNames(incoming))
    var names = PostgresArray<UUID>()
    for device in devices { names.append(high: device.value.high, low: device.value.low) }
    let results = try connection.pipeline { pipeline in
      spaceTimelines.addLock(to: &pipeline)
      pipeline.add(
        IngestQueries.devices, [.integer(space)], of: devices.map { [.uuid($0.value)] })
      pipeline.add(Self.buffered, [.int8(space), .array(names)])
      pipeline.add(IngestQueries.usage, [.integer(space)], of: usage.keys)
      add(lookUps, anchors: anchors, room: room.bytes, to: &pipeline)
      if needsOpenServer { pipeline.add(PostgresStatement(AccessQueries.hadTokens), []) }
    }
    let state = try spaceTimelines.state(results[0])
    var context = IngestContext(
      space: state, now: now, limits: limits, quotas: quotas, room: room)
    context.schema = try schemas.schema(of: space, state) {
      try SpaceSchema(stored: connection.record(SchemaChange.key, in: space))
    }
    for known in try results[1].found({ try KnownDevice(devices[$0], $1) }) {
      (context.owners[known.device], context.chains[known.device]) = (known.owner, known.chain)
    }
    context.buffered = try results[2].compactMap { try BufferedPacket($0) }
    _ = try results[3].found { try usage.read($0, $1, into: &context) }
    try read(results[4...], lookUps, anchors: anchors, into: &context, on: connection)
    context.hasHadTokens = needsOpenServer && results.last?.isEmpty == false
    try context.boundStates(of: incoming.count)
    context.timelineEnds = try connection.ends(
      of: incoming.compactMap { $0.cursor?.timeline(before: state.retentionHorizon) }, in: space)
    return context
  }

  /// Adds the statements with anything to look up.
  private func add(
    _ lookUps: IngestLookUps, anchors: [OperationID] = [], room: Int,
    to pipeline: inout PostgresPipeline
  ) {
    let operations = anchors + lookUps.operations
    if !operations.isEmpty {
      var ids = PostgresArray<UUID>(reserving: operations.count)
      for id in operations { ids.append(high: id.value.high, low: id.value.low) }
      pipeline.add(Self.known, [.int8(space), .array(ids), .int8(Int64(limits.pageBytes))])
    }
    if !lookUps.records.isEmpty { add(lookUps.records, room: room, to: &pipeline) }
    if !lookUps.tables.isEmpty {
      var tables = PostgresArray<String>()
      for table in lookUps.tables.sorted() { tables.append(utf8: table.utf8) }
      pipeline.add(Self.present, [.int8(space), .array(tables)])
    }
    if !lookUps.columns.isEmpty {
      pipeline.add(
        IngestQueries.columns, [.integer(space)], of: WrittenColumns(lookUps.columns).keys)
    }
  }

  private func add(_ keys: [RecordKey], room: Int, to pipeline: inout PostgresPipeline) {
    let (tables, records) = PostgresSlices.arrays(keys)
    pipeline.add(
      Self.records, [.int8(space), .array(tables), .array(records), .int8(Int64(max(room, 0)))])
  }

  /// Looks up the states of further records.
  func load(
    _ keys: [RecordKey], for incoming: Int, into context: inout IngestContext,
    on connection: PostgresConnection
  ) throws {
    if keys.isEmpty { return }
    let room = context.roomForStates(of: keys)
    let results = try connection.pipeline { add(keys, room: room, to: &$0) }
    for row in results[0] { try readRecord(record: row, into: &context) }
    try context.boundStates(of: incoming)
  }

  /// Looks up more for a loaded context.
  ///
  /// - Parameter incoming: The packets of the batch.
  private func load(
    _ lookUps: IngestLookUps, for incoming: Int, into context: inout IngestContext,
    on connection: PostgresConnection
  ) throws {
    let room = context.roomForStates(of: lookUps.records)
    let results = try connection.pipeline { add(lookUps, room: room, to: &$0) }
    try read(results[...], lookUps, into: &context, on: connection)
    try context.boundStates(of: incoming)
  }

  /// Reads the results of the statements added by ``add(_:anchors:to:)``.
  private func read(
    _ results: ArraySlice<PostgresRows>, _ lookUps: IngestLookUps, anchors: [OperationID] = [],
    into context: inout IngestContext, on connection: PostgresConnection
  ) throws {
    var results = results
    if !anchors.isEmpty || !lookUps.operations.isEmpty {
      for row in results.removeFirst() { try readKnown(known: row, into: &context) }
    }
    if !lookUps.records.isEmpty {
      for row in results.removeFirst() { try readRecord(record: row, into: &context) }
    }
    let present = lookUps.tables.isEmpty ? nil : results.removeFirst().count
    if !lookUps.columns.isEmpty {
      try WrittenColumns(lookUps.columns).load(
        besides: try results.removeFirst().found { place, _ in place }, in: space,
        into: &context, on: connection)
    }
    guard let present, present < lookUps.tables.count, context.tables == nil else { return }
    let names = try connection.query(
      Self.tables, [.int8(space), .int8(Int64(context.tablesLoadedMax))])
    context.tables = Set(try names.map { try $0.name(0) })
  }

  private func readKnown(known row: PostgresRow, into context: inout IngestContext) throws {
    guard let id = OperationID(uuidBytes: try row.uuidBytes(0)),
      let device = DeviceID(uuidBytes: try row.uuidBytes(2))
    else { return }
    let outcome: Outcome =
      if !row.isNull(3) {
        try row.bytes(3) { try Outcome(stored: $0) }
      } else {
        try row.bool(5) ? .applied : .unquoted
      }
    context.known[id] = KnownOperation(
      sequence: try row.int8(1), device: device, outcome: outcome,
      historyHash: UInt64(bitPattern: try row.int8(4)))
  }

  private func readRecord(record row: PostgresRow, into context: inout IngestContext) throws {
    let key = RecordKey(table: try row.name(0), record: try row.recordName(1).name)
    context.recordBytes[key] = Int(try row.int4(2))
    if row.isNull(3) { return }
    context.records[key] = try row.bytes(3) { try RecordState(stored: $0, limits: .stored) }
  }

  private func loadBodies(
    _ keys: [BufferedKey], for incoming: Int, into context: inout IngestContext,
    on connection: PostgresConnection
  ) throws {
    let bodies = try connection.bodies(of: keys, in: space)
    context.bodies.merge(bodies) { _, new in new }
    try load(
      IngestLookUps(keys.compactMap { bodies[$0] }, isThorough: true), for: incoming,
      into: &context, on: connection)
  }

  // MARK: Saving

  private func save(_ effects: IngestEffects, on connection: PostgresConnection) throws {
    let writes = PostgresIngestWrites(space: space, now: now)
    _ = try connection.pipeline { pipeline in
      if !effects.isEmpty { writes.add(effects, to: &pipeline) }
      pipeline.commit()
    }
  }
}

extension BufferedPacket {
  fileprivate init?(_ row: PostgresRow) throws {
    guard let device = DeviceID(uuidBytes: try row.uuidBytes(0)),
      let tail = OperationID(uuidBytes: try row.uuidBytes(1))
    else { return nil }
    self.init(
      key: BufferedKey(device: device, tail: tail),
      dependency: row.isNull(2) ? nil : OperationID(uuidBytes: try row.uuidBytes(2)),
      continues: try row.bool(3), byteCount: Int(try row.int8(4)),
      role: Role(rawValue: try row.text(5)) ?? .reader)
  }
}
