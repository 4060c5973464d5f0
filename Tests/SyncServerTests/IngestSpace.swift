import FerryProtocol
import Testing

@testable import FerrySyncServer

/// A space in memory behind the ingest machine: the smallest possible store. It gives the machine
/// only the data that a store would load for it. It expects of each batch that a quick decision is
/// the thorough one (``IngestLookUps``).
struct IngestSpace {
  var state = SpaceState(epoch: Epoch(7))
  private(set) var chains: [DeviceID: DeviceChain] = [:]
  private(set) var buffered: [BufferedPacket] = []
  private var bodies: [BufferedKey: Packet] = [:]
  private(set) var history: [OperationID: KnownOperation] = [:]
  private(set) var records: [RecordKey: RecordState] = [:]
  private(set) var rows: [IngestEffects.OperationRow] = []
  private(set) var notices: [IngestEffects.NoticeRow] = []
  /// Bodies of buffered packets requested by plans.
  private(set) var bodiesLoaded = 0
  /// The holder of each unique key.
  private(set) var holders: [UniqueClaim: Name] = [:]
  /// Look-ups of holders, each of any number of keys.
  private(set) var holderLookUps = 0
  /// The owner of each device.
  private(set) var owners: [DeviceID: Principal] = [:]
  /// The usage of each principal, and of all together.
  private(set) var usage: [Principal: Usage] = [:]
  private(set) var total = Usage()
  var quotas = Quotas.standard
  /// Batches with a quick decision.
  private(set) var quickDecisions = 0
  /// Records read by batch operations.
  private(set) var recordsShown = 0
  var schema: SpaceSchema?
  var limits = Limits.standard
  var now: Int64 = 1_800_000_000_000
  /// Whether the records of a packet have too many bytes to be loaded.
  var lacksStates = false

  /// Sends packets in one transaction.
  mutating func send(
    _ packets: [Packet], byteCount: Int = 100, role: Role = .writer, version: Int = 1
  ) -> [IngestResult] {
    send(
      packets.map {
        IncomingPacket($0, byteCount: byteCount, role: role, protocolVersion: version)
      })
  }

  /// Sends packets of several principals in one transaction.
  mutating func send(_ incoming: [IncomingPacket]) -> [IngestResult] {
    let packets = incoming.map(\.packet)
    let quick = quickly(incoming)
    let effects = decide(incoming, in: context(for: packets))
    #expect(sliced(incoming) == IngestSums(effects))
    if let quick {
      #expect(quick == effects)
      quickDecisions += 1
    }
    save(effects)
    return effects.results
  }

  /// Returns the effects of a quick decision that takes every insert for a new record's. Returns
  /// `nil` if there is none, or a unique key would refuse them.
  private func quickly(_ incoming: [IncomingPacket]) -> IngestEffects? {
    let packets = incoming.map(\.packet)
    let lookUps = IngestLookUps(packets, isThorough: false) { $0.kind == .insert }
    var context = context(for: packets)
    context.known = [:]
    context.records = context.records.filter { lookUps.records.contains($0.key) }
    guard lookUps.suffice(for: packets, in: context) else { return nil }
    var copy = self
    let effects = copy.decide(incoming, in: context)
    guard lookUps.suffice(for: effects),
      effects.operations.allSatisfy({ history[$0.id] == nil }),
      effects.records.allSatisfy({ !$0.isNew || records[$0.key] == nil })
    else { return nil }
    return effects
  }

  private mutating func decide(
    _ incoming: [IncomingPacket], in loaded: IngestContext
  ) -> IngestEffects {
    var context = loaded
    return sure {
      try Ingest.decide(incoming, in: &context) { need, context in load(need, into: &context) }
    }
  }

  private mutating func load(_ need: IngestNeed, into context: inout IngestContext) {
    switch need {
    case .bodies(let keys):
      for key in keys {
        context.bodies[key] = bodies[key]
        bodiesLoaded += 1
        if let body = bodies[key] { load([body], into: &context) }
      }
    case .holders(let claims):
      holderLookUps += 1
      for claim in claims { context.holders.updateValue(holders[claim], forKey: claim) }
    case .matches(let matcher): match(matcher, &context)
    case .nothing: break
    }
  }

  /// Returns the sums of a decision in which one state at a time is in memory, as a store makes it.
  private func sliced(_ incoming: [IncomingPacket]) -> IngestSums {
    sure {
      try IngestRestart.repeated { start in
        var copy = self
        var context = copy.context(for: incoming.map(\.packet))
        context.room = IngestRoom(bytes: 1, allowsSlices: true)
        copy.measure(&context)
        let slices = SlicesInMemory(copy.records)
        let effects = try Ingest.decide(incoming, in: &context, from: start, slices: slices) {
          need, context in
          copy.load(need, into: &context)
          copy.measure(&context)
        }
        return IngestSums(effects, after: slices.saved)
      }
    }
  }

  /// Leaves the sizes of states in a context, and not the states.
  private func measure(_ context: inout IngestContext) {
    for (key, state) in context.records { context.recordBytes[key] = state.stored().count }
    context.records = [:]
    if !context.recordBytes.isEmpty { sure { try context.boundStates(of: 1) } }
  }

  mutating func send(_ packet: Packet, role: Role = .writer) -> IngestResult {
    send([packet], role: role)[0]
  }

  mutating func send(
    _ packet: Packet, from principal: Principal, cursor: Cursor? = nil
  ) -> IngestResult {
    send([IncomingPacket(packet, byteCount: 100, principal: principal, cursor: cursor)])[0]
  }

  /// Forgets the history before the head, like a store after pruning everything.
  mutating func prune() {
    state.retentionHorizon = state.head
    history = history.filter { $0.value.sequence >= state.retentionHorizon }
  }

  func context(for packets: [Packet]) -> IngestContext {
    var context = IngestContext(space: state, now: now, limits: limits, quotas: quotas)
    context.schema = schema
    (context.usage, context.total) = (usage, total)
    context.owners = owners
    let devices = Set(packets.map(\.device))
    context.chains = chains.filter { devices.contains($0.key) }
    context.buffered = buffered.filter { devices.contains($0.key.device) }
    load(packets, into: &context)
    if lacksStates {
      context.records = [:]
      context.recordBytes[RecordKey(table: "tasks", record: "large")] = .max
      try? context.boundStates(of: packets.count)
    }
    return context
  }

  private mutating func match(_ matcher: BatchMatcher, _ context: inout IngestContext) {
    var matcher = matcher
    while matcher.step != .done {
      matcher.beginSlice()
      switch matcher.step {
      case .done: break
      case .keys(let keys):
        for key in keys { show(key, to: &matcher) }
        matcher.advance()
      case .page(let table, let after):
        let keys = records.keys.filter {
          $0.table == table && $0 > RecordKey(table: table, record: after)
        }.sorted()
        for (index, key) in keys.enumerated() {
          show(key, to: &matcher)
          guard matcher.isSliceFull, index < keys.count - 1 else { continue }
          matcher.advance(to: key.record)
          break
        }
        if case .page(table, after) = matcher.step { matcher.advance() }
      }
    }
    for key in matcher.finish(into: &context) { context.records[key] = records[key] }
    context.dropAbsentMatches()
  }

  /// Shows a record as it is stored.
  private mutating func show(_ key: RecordKey, to matcher: inout BatchMatcher) {
    recordsShown += 1
    records[key]?.stored().withUnsafeBytes { try? matcher.match(key, $0) }
  }

  private func load(_ packets: [Packet], into context: inout IngestContext) {
    for packet in packets {
      if let dependency = packet.dependency { context.known[dependency] = history[dependency] }
      for operation in packet.operations {
        context.known[operation.id] = history[operation.id]
        context.records[operation.key] = records[operation.key]
      }
    }
  }

  private mutating func save(_ effects: IngestEffects) {
    state = effects.space
    owners.merge(effects.owners) { $1 }
    usage.merge(effects.usage) { $1 }
    total = effects.total ?? total
    chains.merge(effects.chains) { $1 }
    buffered.removeAll { effects.unbuffered.contains($0.key) }
    for row in effects.buffered {
      buffered.append(row.packet)
      bodies[row.packet.key] = try? Packet(decoding: row.body, limits: limits)
    }
    for row in effects.claims { holders[row.claim] = row.record }
    for row in effects.operations {
      let outcome = try? row.outcome.map { bytes in
        try decode(bytes) { (reader) throws(MalformedMessage) in
          try Outcome(from: &reader, limits: .standard)
        }
      }
      history[row.id] = KnownOperation(
        sequence: row.sequence, device: row.device, outcome: outcome ?? .applied,
        historyHash: row.historyHash)
    }
    for row in effects.records {
      records[row.key] = row.state.withUnsafeBytes {
        try? RecordState(stored: $0, limits: .standard)
      }
    }
    rows += effects.operations
    notices += effects.notices
  }
}

/// Returns the value of a call that throws nothing in memory.
private func sure<T>(_ body: () throws -> T) -> T {
  do { return try body() } catch { preconditionFailure("\(error)") }
}

/// Makes a device's packets with predictable ids.
struct PacketMaker {
  let device: DeviceID
  private(set) var tail: OperationID?
  private var made: UInt64 = 0
  var milliseconds: Int64 = 1_800_000_000_000

  init(_ number: UInt64) { device = DeviceID(UniqueID(high: 7 << 12, low: number)) }

  mutating func operation(
    _ kind: OperationKind = .insert, _ record: String = "r", _ columns: [Column] = [],
    times: [Name: HybridTimestamp] = [:]
  ) -> SyncOperation {
    made += 1
    milliseconds += 1
    return SyncOperation(
      id: OperationID(UniqueID(high: device.value.low << 32 | made, low: made)),
      key: RecordKey(table: "t", record: record), kind: kind,
      time: HybridTimestamp(milliseconds: milliseconds), columns: columns, columnTimes: times)
  }

  mutating func batch(
    _ effect: Batch.Effect = .set, where text: String, _ columns: [Column] = []
  ) throws -> SyncOperation {
    var operation = operation(.batch, "", columns)
    operation.batch = Batch(effect, where: try RecordPredicate(text, key: "id"))
    return operation
  }

  mutating func packet(_ operations: [SyncOperation], continues: Bool = false) -> Packet {
    defer { tail = operations.last?.id }
    return Packet(
      device: device, dependency: tail, operations: operations, continues: continues)
  }

  /// Returns a packet of new inserts, one for each record.
  mutating func packet(_ records: String..., continues: Bool = false) -> Packet {
    packet(records.map { operation(.insert, $0, [Column("v", .text($0))]) }, continues: continues)
  }
}

extension IngestResult {
  var code: ProblemCode? { problem?.code }
  /// The problem's refusals of single operations.
  var refusals: [Refusal] { problem?.refusals ?? [] }
  /// The result in a word: `applied`, `duplicate`, `buffered` or the problem's code.
  var word: String { receipt?.status.rawValue ?? code?.rawValue ?? "" }
}
