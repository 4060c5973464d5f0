import FerryProtocol

/// The look-ups for a decision about a batch of packets, within one transaction of either store.
/// PostgreSQL needs one round trip for most of them.
struct IngestLoader {
  let connection: any PlainConnection
  let space: Int64
  let now: Int64
  let limits: Limits
  let quotas: Quotas
  let room: IngestRoom
  let schemas: SchemaCache
  let timelines: OwnTimelines

  /// The rows found so far.
  private final class Loading {
    var context: IngestContext?
    var waiting: [(arrival: Int64, packet: BufferedPacket)] = []
    /// The tables with records among those of the look-ups.
    var present = 0
    /// The places of known columns.
    var columns: [Int] = []

    init(_ context: IngestContext? = nil) { self.context = context }
  }

  // MARK: Contexts

  /// Locks the space, and loads everything needed at first for a decision about packets.
  func context(
    for incoming: [IncomingPacket], _ lookUps: IngestLookUps
  ) throws -> IngestContext {
    let loading = Loading()
    let anchors = incoming.compactMap { $0.cursor?.anchor?.operation }
    try connection.perform(
      frame(of: incoming, into: loading)
        + steps(lookUps, anchors: anchors, room: room.bytes, into: loading))
    var context = try finish(loading, incoming)
    try finish(loading, lookUps, into: &context)
    try context.boundStates(of: incoming.count)
    return context
  }

  /// Locks the space, and loads the part of a context with neither records nor the history. They
  /// change only together with the head, or are removed behind the retention horizon.
  func frame(of incoming: [IncomingPacket]) throws -> IngestContext {
    let loading = Loading()
    try connection.perform(frame(of: incoming, into: loading))
    return try finish(loading, incoming)
  }

  private func frame(of incoming: [IncomingPacket], into loading: Loading) -> [PlainStep] {
    let devices = Set(incoming.map(\.packet.device)).sorted()
    let keys: [[PlainValue]] = devices.map { [.uuid($0.value)] }
    let usage = UsageNames(incoming)
    var steps: [PlainStep] = [
      .one(SpaceState.lock, [.integer(space)]) { row in
        loading.context = IngestContext(
          space: try SpaceState(row), now: now, limits: limits, quotas: quotas, room: room)
      },
      .many(IngestQueries.devices, [.integer(space)], of: keys) { place, row in
        let known = try KnownDevice(devices[place], row)
        loading.context?.owners[known.device] = known.owner
        loading.context?.chains[known.device] = known.chain
      },
      .many(IngestQueries.buffered, [.integer(space)], of: keys) { place, row in
        guard let packet = try BufferedPacket(of: devices[place], row) else { return }
        loading.waiting.append((try row.integer(5), packet))
      },
      .many(IngestQueries.usage, [.integer(space)], of: usage.keys) { place, row in
        try usage.read(place, row, into: &loading.context)
      },
    ]
    if incoming.contains(where: \.needsOpenServer) {
      steps.append(.one(AccessQueries.hadTokens, []) { _ in loading.context?.hasHadTokens = true })
    }
    return steps
  }

  private func finish(_ loading: Loading, _ incoming: [IncomingPacket]) throws -> IngestContext {
    guard var context = loading.context else { throw StoreError.spaceGone }
    loading.context = nil
    context.space.nextTimeline = timelines.next(in: space, head: context.space.head)
    context.buffered = loading.waiting.sorted { $0.arrival < $1.arrival }.map(\.packet)
    context.schema = try schemas.schema(of: space, context.space) {
      try SpaceSchema(stored: connection.record(SchemaChange.key, in: space))
    }
    context.timelineEnds = try connection.ends(
      of: incoming.compactMap { $0.cursor?.timeline(before: context.space.retentionHorizon) },
      in: space)
    return context
  }

  // MARK: History and records

  /// Loads data missing for a decision.
  ///
  /// - Parameter count: The packets of the batch.
  func load(
    _ need: IngestNeed, _ matches: BatchMatches, for count: Int, into context: inout IngestContext
  ) throws {
    switch need {
    case .bodies(let keys):
      let bodies = try connection.bodies(of: keys, in: space)
      context.bodies.merge(bodies) { _, new in new }
      try load(
        IngestLookUps(keys.compactMap { bodies[$0] }, isThorough: true), for: count, into: &context)
    case .holders(let claims):
      for (claim, record) in try connection.holders(of: claims, in: space) {
        context.holders[claim] = record
      }
    case .matches(let matcher): try match(matcher, matches, for: count, into: &context)
    case .nothing: break
    }
  }

  /// Looks up more for a loaded context.
  func load(
    _ lookUps: IngestLookUps, for count: Int, into context: inout IngestContext
  ) throws {
    let loading = Loading(context)
    let room = context.roomForStates(of: lookUps.records)
    try connection.perform(steps(lookUps, room: room, into: loading))
    context = loading.context ?? context
    loading.context = nil
    try finish(loading, lookUps, into: &context)
    try context.boundStates(of: count)
  }

  private func steps(
    _ lookUps: IngestLookUps, anchors: [OperationID] = [], room: Int, into loading: Loading
  ) -> [PlainStep] {
    let operations = anchors + lookUps.operations
    let tables = loading.context?.tables == nil ? lookUps.tables.sorted() : []
    return [
      .many(
        IngestQueries.known, [.integer(space), .integer(Int64(limits.pageBytes))],
        of: operations.map { [.uuid($0.value)] }
      ) { place, row in
        loading.context?.known[operations[place]] = try KnownOperation(row)
      },
      records(lookUps.records, room: room, into: loading),
      .many(IngestQueries.present, [.integer(space)], of: tables.map { [.text($0.text)] }) { _, _ in
        loading.present += 1
      },
      .many(
        IngestQueries.columns, [.integer(space)], of: WrittenColumns(lookUps.columns).keys
      ) { place, _ in loading.columns.append(place) },
    ]
  }

  private func records(_ keys: [RecordKey], room: Int, into loading: Loading) -> PlainStep {
    .many(
      IngestQueries.records, [.integer(space), .integer(Int64(max(room, 0)))],
      of: keys.map(\.values)
    ) { place, row in
      loading.context?.recordBytes[keys[place]] = Int(try row.integer(0))
      if row.isNull(1) { return }
      loading.context?.records[keys[place]] = try row.recordState(1)
    }
  }

  private func finish(
    _ loading: Loading, _ lookUps: IngestLookUps, into context: inout IngestContext
  ) throws {
    try WrittenColumns(lookUps.columns).load(
      besides: loading.columns, in: space, into: &context, on: connection)
    guard context.tables == nil, loading.present < lookUps.tables.count else { return }
    context.tables = Set(
      try connection.rows(
        IngestQueries.tables, [.integer(space), .integer(Int64(context.tablesLoadedMax))]
      ) { Name(try $0.text(0)) })
  }

  // MARK: Batches

  /// Hands over the matches of a plan's batch operations.
  private func match(
    _ wanted: BatchMatcher, _ matches: BatchMatches, for count: Int,
    into context: inout IngestContext
  ) throws {
    try wanted.handOver(matches, to: &context) { operation in
      try connection.rows(
        IngestQueries.known, [.integer(space), .integer(0)], of: [[.uuid(operation.value)]]
      ) { try KnownOperation($1)?.place }.first ?? nil
    } changed: { head, revise in
      var last: SequenceNumber? = head
      while let start = last {
        last = nil
        try connection.scan(
          IngestQueries.changed, [.integer(space), .integer(start)], bytes: Self.scanBytes
        ) { row in
          last = try row.integer(0)
          let key = try row.recordKey(1)
          try row.bytes(3) { try revise(key, $0) }
          return true
        }
      }
    } load: { keys, context in
      if keys.isEmpty { return }
      let loading = Loading(context)
      let room = context.roomForStates(of: keys)
      try connection.perform([records(keys, room: room, into: loading)])
      context = loading.context ?? context
      try context.boundStates(of: count)
    }
  }

  /// Bytes of records read at once.
  fileprivate static let scanBytes = 4 << 20
}

extension PlainConnection {
  /// Shows a matcher one slice of the requested records.
  func show(_ matcher: inout BatchMatcher, in space: Int64) throws {
    switch matcher.step {
    case .done: return
    case .keys(let keys):
      try forEachState(of: keys, in: space) { try matcher.match($0, $1) }
      matcher.advance()
    case .page(let table, let after):
      var last: Name?
      try scan(
        IngestQueries.page, [.integer(space), .text(table.text), .record(after)],
        bytes: IngestLoader.scanBytes
      ) { row in
        if matcher.isSliceFull { return false }
        let record = try row.recordName(0).name
        try row.bytes(1) { try matcher.match(RecordKey(table: table, record: record), $0) }
        last = record
        return true
      }
      matcher.advance(to: last)
    }
  }

  /// Locks a space until the transaction ends, and returns its row.
  func lockedState(of space: Int64, _ timelines: OwnTimelines) throws -> SpaceState {
    guard var state = try rows(SpaceState.lock, [.integer(space)], { try SpaceState($0) }).first
    else { throw StoreError.spaceGone }
    state.nextTimeline = timelines.next(in: space, head: state.head)
    return state
  }
}

extension SpaceState {
  fileprivate static let lock = PlainStatement(
    "lock",
    """
    SELECT epoch, head, clock, newest, schema_version, minimum_protocol, retention_horizon,
      history_hash, timeline
    FROM spaces WHERE id = $1
    """, .waiting)

  fileprivate init(_ row: any PlainRow) throws {
    self.init(
      epoch: Epoch(UInt64(bitPattern: try row.integer(0))), head: try row.integer(1),
      newest: try row.uniqueID(3).map(OperationID.init),
      historyHash: UInt64(bitPattern: try row.integer(7)),
      clock: HybridTimestamp(rawValue: UInt64(bitPattern: try row.integer(2))),
      schemaVersion: try row.integer(4), minimumProtocol: Int(try row.integer(5)),
      retentionHorizon: try row.integer(6),
      timeline: try row.optionalInteger(8).map { Timeline(UInt64(bitPattern: $0)) })
  }
}

extension BufferedPacket {
  fileprivate init?(of device: DeviceID, _ row: any PlainRow) throws {
    guard let tail = try row.uniqueID(0) else { return nil }
    self.init(
      key: BufferedKey(device: device, tail: OperationID(tail)),
      dependency: try row.uniqueID(1).map(OperationID.init), continues: try row.flag(2),
      byteCount: Int(try row.integer(3)), role: Role(rawValue: try row.text(4)) ?? .reader)
  }
}

extension KnownOperation {
  fileprivate init?(_ row: any PlainRow) throws {
    guard let device = try row.uniqueID(1) else { return nil }
    let outcome: Outcome =
      if row.isNull(3) { .applied } else if row.isNull(4) { .unquoted } else {
        try row.bytes(4) { try Outcome(stored: $0) }
      }
    self.init(
      sequence: try row.integer(0), device: DeviceID(device), outcome: outcome,
      historyHash: UInt64(bitPattern: try row.integer(2)))
  }
}
