import FerryPlatform
import FerryProtocol

/// A search for the stored records matched by the batch operations of a plan; pure.
///
/// A store shows it the records of ``step``, outside of the space's lock and a slice at a time. So
/// no writer waits for it. Each packet has a budget (SPEC.md §10). A packet with greater needs is
/// refused, and no more of it is evaluated. Each examined record has a cost, and so has the
/// evaluation of each predicate.
package struct BatchMatcher: Sendable, Equatable {
  /// The records to show next.
  package enum Step: Sendable, Equatable {
    /// Records of a table in the order of their identifiers, after one of them.
    case page(table: Name, after: Name)
    /// These, if they exist.
    case keys([RecordKey])
    /// Nothing.
    case done
  }

  /// The reason why a packet's batches are refused.
  enum Fault: Sendable, Equatable { case matchesTooMuch, costsTooMuch }

  private struct Search: Sendable, Equatable {
    let operation: SyncOperation
    let predicate: RecordPredicate
    let cost: Int
    /// The only possible matches; `nil` if any record can match.
    let bound: Set<RecordKey>?
    /// The packet, by position in the plan.
    let packet: Int
    /// The packets applied together with it.
    let run: [IngestPlan.Source]
    /// The matching records, with the bytes of their states.
    var keys: [RecordKey: Int] = [:]
  }

  /// The budget used up by the batches of one packet together.
  private struct Tally: Sendable, Equatable {
    var records = 0
    var bytes = 0
    var cost = 0
    var fault: Fault?
  }

  /// The cost of each record examined by a packet: reading costs more than comparing.
  package static let recordCost = 8
  /// A slice ends behind this cost, or this many records: some 10 ms.
  private static let sliceCost = 250_000
  private static let sliceRecords = 2_000
  private static let keysPerStep = 1_000

  private var searches: [Search] = []
  /// By the table: a batch's key has no record.
  private var searchesOfTable: [RecordKey: [Int]] = [:]
  private var tallies: [Tally] = []
  /// Tables to scan, and the progress.
  private var tables: [RecordKey] = []
  private var last: Name = ""
  /// Records to look up.
  private var keys: [RecordKey] = []
  private var slice = (cost: 0, records: 0)
  private let limits: Limits

  package static func == (left: BatchMatcher, right: BatchMatcher) -> Bool {
    left.searches == right.searches && left.tallies == right.tallies
      && left.tables == right.tables && left.last == right.last && left.keys == right.keys
  }

  /// Searches for those batch operations of the plan whose matches the context lacks.
  init(_ plan: IngestPlan, of packets: [IncomingPacket], in context: IngestContext) {
    limits = context.limits
    for run in plan.runs {
      for source in run.sources {
        let packet: Packet? =
          switch source {
          case .incoming(let index): packets[index].packet
          case .buffered(let key): context.bodies[key]
          }
        let place = tallies.count
        tallies.append(Tally())
        for operation in packet?.operations ?? [] {
          guard let batch = operation.batch, context.known[operation.id] == nil,
            context.matches[operation.id] == nil
          else { continue }
          add(operation, batch.predicate, place, run.sources)
        }
      }
    }
    let walked = searchesOfTable.filter { $0.value.contains { searches[$0].bound == nil } }
    tables = walked.keys.sorted(by: >)
    var wanted = Set<RecordKey>()
    for search in searches where walked[search.operation.key] == nil {
      wanted.formUnion(search.bound ?? [])
    }
    keys = wanted.sorted(by: >)
    leaveOut()
  }

  private mutating func add(
    _ operation: SyncOperation, _ predicate: RecordPredicate, _ packet: Int,
    _ run: [IngestPlan.Source]
  ) {
    let bound = predicate.records.map { records in
      Set(records.map { RecordKey(table: operation.key.table, record: $0) })
    }
    searchesOfTable[operation.key, default: []].append(searches.count)
    searches.append(
      Search(
        operation: operation, predicate: predicate, cost: predicate.cost, bound: bound,
        packet: packet, run: run))
    // A search for a missing record has a cost too.
    spend((bound?.count ?? 0) * Self.recordCost, packet)
  }

  /// True if there is nothing to look for.
  var isEmpty: Bool { searches.isEmpty }

  /// The batch operations with a search.
  var operations: [OperationID] { searches.map(\.operation.id) }

  // MARK: Showing records

  /// The records to show next.
  package var step: Step {
    if !keys.isEmpty { return .keys(keys.suffix(Self.keysPerStep)) }
    if let table = tables.last { return .page(table: table.table, after: last) }
    return .done
  }

  /// Begins a slice of the records in ``step``.
  package mutating func beginSlice() { slice = (0, 0) }

  /// True if the rest of the step is to be shown in another slice.
  package var isSliceFull: Bool {
    slice.cost >= Self.sliceCost || slice.records >= Self.sliceRecords
  }

  /// Examines one record of a table as stored.
  package mutating func match(
    _ key: RecordKey, _ state: UnsafeRawBufferPointer
  ) throws(MalformedMessage) {
    slice.records += 1
    let table = RecordKey(table: key.table, record: "")
    guard let indices = searchesOfTable[table], indices.contains(where: { isLive($0) }) else {
      return
    }
    let decoded = try RecordState(stored: state, limits: .stored)
    var payer: Int?
    for index in indices where isLive(index) {
      let packet = searches[index].packet
      if payer != packet { spend(Self.recordCost, packet) }
      payer = packet
      guard searches[index].bound?.contains(key) ?? true else { continue }
      spend(searches[index].cost, packet)
      guard isLive(index), searches[index].predicate.matches(record: key.record, decoded) else {
        continue
      }
      searches[index].keys[key] = state.count
      tallies[packet].records += 1
      tallies[packet].bytes += state.count
      if tallies[packet].records > limits.batchRecords || tallies[packet].bytes > limits.batchBytes
      {
        fail(packet, .matchesTooMuch)
      }
    }
  }

  /// Marks the records of ``step`` as shown: all of them, or those up to this record.
  package mutating func advance(to record: Name? = nil) {
    if !keys.isEmpty {
      keys.removeLast(min(keys.count, Self.keysPerStep))
    } else if let record {
      last = record
    } else {
      _ = tables.popLast()
      last = ""
    }
    leaveOut()
  }

  /// Leaves out the records needed only by refused packets.
  private mutating func leaveOut() {
    if isOver(keys) { keys = [] }
    while let table = tables.last, isOver([table]) {
      tables.removeLast()
      last = ""
    }
  }

  /// Examines a record changed after it may have been shown.
  mutating func revise(
    _ key: RecordKey, _ state: UnsafeRawBufferPointer
  ) throws(MalformedMessage) {
    for index in searchesOfTable[RecordKey(table: key.table, record: "")] ?? [] {
      guard let bytes = searches[index].keys.removeValue(forKey: key) else { continue }
      tallies[searches[index].packet].records -= 1
      tallies[searches[index].packet].bytes -= bytes
    }
    try match(key, state)
  }

  /// Returns whether no packet looks for records of these tables any more.
  private func isOver(_ keys: [RecordKey]) -> Bool {
    var seen = Set<RecordKey>()
    return keys.allSatisfy { key in
      let table = RecordKey(table: key.table, record: "")
      guard seen.insert(table).inserted else { return true }
      return !(searchesOfTable[table] ?? []).contains { isLive($0) }
    }
  }

  private func isLive(_ search: Int) -> Bool { tallies[searches[search].packet].fault == nil }

  private mutating func spend(_ cost: Int, _ packet: Int) {
    slice.cost += cost
    tallies[packet].cost += cost
    if tallies[packet].cost > limits.batchEvaluations { fail(packet, .costsTooMuch) }
  }

  private mutating func fail(_ packet: Int, _ fault: Fault) {
    guard tallies[packet].fault == nil else { return }
    tallies[packet].fault = fault
    for index in searches.indices where searches[index].packet == packet {
      searches[index].keys = [:]
    }
  }

  // MARK: Matches

  /// Returns the matches, for a later transaction.
  ///
  /// - Parameter origin: The space as it was before the first record was shown.
  package func matches(since origin: HistoryOrigin) -> BatchMatches {
    var matches = BatchMatches(since: origin)
    for search in searches {
      matches.found[search.operation.id] = BatchMatches.Found(
        keys: search.keys, fault: tallies[search.packet].fault)
    }
    return matches
  }

  /// Adopts earlier matches; returns `false` if some are missing.
  mutating func adopt(_ matches: BatchMatches) -> Bool {
    for index in searches.indices {
      guard let found = matches.found[searches[index].operation.id] else { return false }
      searches[index].keys = found.keys
      tallies[searches[index].packet].records += found.keys.count
      tallies[searches[index].packet].bytes += found.keys.values.reduce(0, +)
      if let fault = found.fault { fail(searches[index].packet, fault) }
    }
    (tables, keys) = ([], [])
    return true
  }

  /// Hands over the matches. Packets whose batches match or cost too much are refused. Returns the
  /// records whose states the context lacks; call ``IngestContext/dropAbsentMatches()`` when they
  /// are loaded.
  package consuming func finish(into context: inout IngestContext) -> [RecordKey] {
    var lacking = Set<RecordKey>()
    for search in searches {
      if let fault = tallies[search.packet].fault {
        refuse(search, fault, in: &context)
        continue
      }
      context.matches[search.operation.id] = search.keys.keys.sorted()
      lacking.formUnion(search.keys.keys.filter { context.records[$0] == nil })
    }
    return lacking.sorted()
  }

  private func refuse(_ search: Search, _ fault: Fault, in context: inout IngestContext) {
    let refusals = searches.filter { $0.packet == search.packet }.map { other in
      switch fault {
      case .matchesTooMuch:
        Refusal(
          other.operation, .invalidPredicate,
          """
          the batches of a packet may match at most \(limits.batchRecords.grouped) records and \
          \(limits.batchBytes >> 20) MiB: use a narrower predicate
          """)
      case .costsTooMuch: Refusal(tooExpensive: other.operation)
      }
    }
    for source in search.run where context.refused[source] == nil {
      context.refused[source] = .operationRefused(refusals)
    }
  }
}

extension Refusal {
  /// Creates the refusal of a batch in a packet that has used up the budget for predicates.
  init(tooExpensive operation: SyncOperation) {
    self.init(
      operation, .batchTooExpensive,
      """
      the batches of a packet are too expensive to evaluate: name the records by their keys, use \
      shorter predicates, or send fewer batches at once
      """)
  }
}
