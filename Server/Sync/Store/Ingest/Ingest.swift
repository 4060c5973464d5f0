import FerryProtocol

/// The rules by which packets enter a space (SPEC.md §4), without any I/O.
///
/// A store loads an ``IngestContext`` under the space's lock and asks for a plan until nothing is
/// missing. Then it applies the plan and writes the effects.
package struct Ingest {
  let packets: [IncomingPacket]
  let context: IngestContext
  let plan: IngestPlan
  var effects: IngestEffects
  var known: [OperationID: KnownOperation]
  var records: [TouchedRecord] = []
  private(set) var recordIndex: [RecordKey: Int] = [:]
  /// The states in memory, if they are loaded in slices.
  var working: WorkingStates?
  private var receipts: [IngestPlan.Source: PacketReceipt] = [:]
  private var released: [Int: [PacketReceipt]] = [:]
  private let check: OperationCheck
  private var packetRules: IngestRules
  var claims: ClaimLedger
  private var tables: TableLedger
  private var columns: ColumnLedger
  var usage: UsageLedger
  /// The refusals of the current run.
  var refusals: [Refusal] = []
  /// Indexes in ``records`` of the records touched by the current packet.
  var touched: [Int] = []
  /// Rows of ``effects`` already counted as written, and bytes written by the current packet.
  var counted = (operations: 0, notices: 0)
  var written = Int64(0)
  /// The cost of evaluating the current packet's batches so far.
  private var spent = 0
  /// The number of the current packet.
  private var packetNumber = 0
  /// Bytes of lost values in the answers to this batch.
  private var quoted = 0
  /// The place of the first operation of the transaction under way; `nil` before it.
  private var transactionStart: SequenceNumber?

  struct TouchedRecord {
    let key: RecordKey
    var state: RecordState
    /// True if the store has no row of it yet.
    var isNew: Bool
    /// As it was before the packet under way.
    var measure: RecordMeasure
    /// The last packet that touched it.
    var packet: Int
    /// The size when it left the memory; `nil` while ``state`` is the present one.
    var evicted: RecordMeasure?
    /// True if ``state`` differs from the store's row.
    var isChanged = true
    /// The packet's operation with the most bytes written to it, named by a refusal; `nil` while
    /// the packet only deletes.
    var writer: (operation: OperationID, bytes: Int)?
    /// The stored form; `nil` while it changes.
    var stored: [UInt8]?
  }

  /// Decides which packets are applied, which wait and which are refused.
  package static func plan(
    _ packets: [IncomingPacket], in context: IngestContext
  ) -> IngestPlan {
    IngestPlanner(context, packets).planned()
  }

  /// Merges the operations of a complete plan. Call ``decide(_:in:from:slices:load:)``, which plans
  /// again if these effects require it.
  ///
  /// - Parameter slices: Loads and writes states of a sliced context.
  package static func apply(
    _ plan: IngestPlan, to packets: [IncomingPacket], in context: IngestContext,
    slices: (any IngestSlices)? = nil
  ) throws -> IngestEffects {
    precondition(plan.missing.isEmpty, "the plan's missing packets have to be loaded first")
    return try Ingest(packets, context, plan, slices).applied()
  }

  private init(
    _ packets: [IncomingPacket], _ context: IngestContext, _ plan: IngestPlan,
    _ slices: (any IngestSlices)?
  ) {
    self.packets = packets
    self.context = context
    self.plan = plan
    precondition(slices != nil || !context.isSliced, "nothing can load the states")
    if context.isSliced, let slices { working = WorkingStates(slices, room: context.room.bytes) }
    known = context.known
    check = OperationCheck(schema: context.schema)
    packetRules = IngestRules(context.schema)
    claims = ClaimLedger(context)
    tables = TableLedger(context)
    columns = ColumnLedger(context)
    usage = UsageLedger(context)
    effects = IngestEffects(space: context.space)
    effects.chains = plan.chains
    effects.owners = plan.owners
    effects.unbuffered = plan.unbuffered
  }

  private consuming func applied() throws -> IngestEffects {
    countDevices()
    for run in plan.runs {
      let owner = owner(of: run)
      usage.beginRun(of: owner)
      transactionStart = nil
      for source in run.sources { try apply(source, closer: run.closer, of: owner) }
      judge(run, of: owner)
      if !effects.refused.isEmpty { break }
    }
    effects.missingClaims = claims.missing
    if !effects.refused.isEmpty || !effects.missingClaims.isEmpty {
      guard working?.hasSaved == true else { return effects }
      throw IngestRestart(refused: effects.refused, claims: effects.missingClaims)
    }
    effects.claims = claims.rows
    effects.columns = columns.rows
    effects.records.reserveCapacity(records.count)
    for index in records.indices where records[index].hasRow {
      effects.records.append(IngestEffects.RecordRow(records[index]))
    }
    effects.buffered = plan.buffered.map { buffer($0) }
    (effects.usage, effects.total) = (usage.changed, usage.changedTotal)
    effects.results = plan.verdicts.indices.map { result($0) }
    return effects
  }

  // MARK: Applying

  private mutating func apply(
    _ source: IngestPlan.Source, closer: Int, of owner: Principal
  ) throws {
    guard let packet = packet(source), let tail = packet.tail else { return }
    spent = 0
    packetNumber += 1
    let before = effects.space
    let role = role(source)
    let isAuthority = packet.isAuthority(role)
    packetRules.isAuthority = isAuthority
    reserve(packet.operations.count)
    working?.expect(packet.operations.lazy.map(\.key))
    // By index: a loop over the operations would copy each one.
    for index in packet.operations.indices where known[packet.operations[index].id] == nil {
      let refusal = check.refusal(
        of: packet.operations[index], by: role, isAuthority: isAuthority)
      if let refusal {
        refusals.append(refusal)
      } else {
        try apply(packet.operations[index], of: packet.device)
      }
    }
    finish(owner)
    let count = effects.space.head - before.head
    effects.chains[packet.device]?.operations += count
    var receipt = receipt(for: packet, tail, count > 0 ? .applied : .duplicate)
    // If all of it is new and without a gap, the author can lead the cursor over it.
    if count > 0, receipt.sequences == before.head + 1...effects.space.head {
      (receipt.historyHashBefore, receipt.historyHash) = (
        before.historyHash, effects.space.historyHash
      )
      receipt.timeline = effects.space.timeline
    }
    receipts[source] = receipt
    if case .buffered = source { released[closer, default: []].append(receipt) }
  }

  /// Makes room for a packet with so many operations.
  private mutating func reserve(_ count: Int) {
    guard count > 8, working == nil else { return }
    effects.operations.reserveCapacity(effects.operations.count + count)
    records.reserveCapacity(records.count + count)
    touched.reserveCapacity(count)
    known.reserveCapacity(known.count + count)
    recordIndex.reserveCapacity(recordIndex.count + count)
  }

  /// Returns the owner of a run, which is of one device.
  private func owner(of run: IngestPlan.Run) -> Principal {
    run.sources.first.flatMap { packet($0) }.map { owner(of: $0.device) } ?? .anonymous
  }

  /// Spends the packet's budget on touched records; returns `false` if not enough is left.
  mutating func spend(_ cost: Int, times: Int) -> Bool {
    let (product, overflows) = cost.multipliedReportingOverflow(by: times)
    spent = overflows ? .max : min(product, .max - spent) + spent
    return spent <= context.limits.batchEvaluations / 4
  }

  private func packet(_ source: IngestPlan.Source) -> Packet? {
    switch source {
    case .incoming(let index): packets[index].packet
    case .buffered(let key): context.bodies[key]
    }
  }

  private func role(_ source: IngestPlan.Source) -> Role {
    switch source {
    case .incoming(let index): packets[index].role
    case .buffered(let key): context.buffered.first { $0.key == key }?.role ?? .reader
    }
  }

  /// Refuses the whole run if one of the operations violates a rule.
  private mutating func judge(_ run: IngestPlan.Run, of owner: Principal) {
    refusals += claims.finish { key in recordIndex[key].map { records[$0].state } }
    let refused: Problem? =
      refusals.isEmpty
      ? usage.excess(of: owner)
      : Problem.operationRefused(
        refusals.inOrder(of: run.sources.compactMap(packet)).bounded(by: context.limits.pageBytes))
    guard let problem = refused else { return }
    for source in run.sources { effects.refused[source] = problem }
  }

  /// - Parameter batch: For a batch's effect: the operation to name in refusals.
  mutating func apply(
    _ operation: SyncOperation, of device: DeviceID, for batch: OperationID? = nil
  ) throws {
    if let batch = operation.batch { return try expand(operation, batch, of: device) }
    let (index, isFirst) = try touch(operation.key)
    let time = admitted(operation.time)
    let sequence = effects.space.place(operation.id, at: time, base: operation.base)
    if claims.concerns(operation.key.table) {
      claims.record(operation.named(batch), before: records[index].state)
    }
    // A record created by an insert has exactly the columns of this insert.
    let creates = isFirst && operation.kind == .insert && operation.isPlain
    let created = isFirst ? nil : records[index].state.soleInsert
    let former = created == nil ? [] : records[index].state.columns
    let columnBytes = operation.kind == .delete ? 0 : operation.columnBytes
    let rules = packetRules.rules(for: operation.key.table)
    let before = operation.reason == nil ? nil : records[index].state
    let stamp = Stamp(time: time, device: device)
    let outcome = records[index].state.merge(
      operation, stamp: stamp, sequence: sequence, rules: rules)
    if !records[index].state.isEmpty {
      if isFirst, let refusal = tables.add(operation) { refusals.append(refusal) }
      if let refusal = columns.add(operation, for: batch) { refusals.append(refusal) }
    }
    // A delete can always be applied.
    if operation.kind != .delete {
      recordWriter(batch ?? operation.id, of: columnBytes, at: index)
    }
    effects.notifyLosers(
      of: operation, outcome,
      overruled: before?.overruled(by: stamp, at: sequence, leaving: records[index].state) ?? [],
      by: device, at: sequence)
    let historyHash = effects.space.historyHash
    known[operation.id] = KnownOperation(
      sequence: sequence, device: device, outcome: quotable(outcome), historyHash: historyHash)
    // An operation without any change leaves the columns to the next one.
    let formerColumns =
      created != nil && records[index].state.soleInsert != created
      ? former.encodedColumns() : nil
    let isKeptByRecord = creates && (rules.isPlain || records[index].state.soleInsert != nil)
    effects.operations.append(
      IngestEffects.OperationRow(
        id: operation.id, sequence: sequence, historyHash: historyHash, device: device,
        key: operation.key, kind: operation.kind, time: time, base: operation.base,
        data: operation.kind == .delete || isKeptByRecord ? nil : operation.encodedColumns(),
        former: formerColumns,
        times: operation.columnTimes.isEmpty ? nil : operation.encodedTimes(clampedTo: time),
        outcome: outcome == .applied ? nil : outcome.encoded(), marks: operation.encodedMarks(),
        omittedBytes: isKeptByRecord ? columnBytes : 0, ordinal: ordinal(at: sequence)))
  }

  /// Returns the number of operations of the transaction before the one at a place.
  mutating func ordinal(at sequence: SequenceNumber) -> Int32 {
    let start = transactionStart ?? sequence
    transactionStart = start
    return Int32(clamping: sequence - start)
  }

  /// Returns the time under which an operation enters: see ``SpaceState/admit(_:until:)``.
  mutating func admitted(_ time: HybridTimestamp) -> HybridTimestamp {
    let (limit, overflows) = context.now.addingReportingOverflow(context.limits.clockSkewMax)
    return effects.space.admit(
      time, until: HybridTimestamp(milliseconds: overflows ? .max : limit))
  }

  /// Returns an outcome for the answer, without lost values too large for any answer.
  private mutating func quotable(_ outcome: Outcome) -> Outcome {
    if outcome.conflicts.isEmpty { return outcome }
    let bytes = outcome.conflicts.reduce(0) { $0 + $1.lost.byteCount }
    guard quoted + bytes > context.limits.pageBytes else {
      quoted += bytes
      return outcome
    }
    return Outcome(
      isOverruled: outcome.isOverruled, records: outcome.records,
      omitted: outcome.conflicts.count)
  }

  /// Returns the record's place, and `true` if it has no state yet. The state is in memory then.
  private mutating func touch(_ key: RecordKey) throws -> (Int, isFirst: Bool) {
    let next = records.count
    let index = recordIndex.place(of: key, orNew: next)
    if index < next {
      try restore(index)
      records[index].isChanged = true
      records[index].stored = nil
      if records[index].packet != packetNumber {
        records[index].packet = packetNumber
        touched.append(index)
      }
      return (index, false)
    }
    let existing = try existing(key)
    touched.append(next)
    records.append(
      TouchedRecord(
        key: key, state: existing ?? RecordState(), isNew: existing == nil,
        measure: existing.map { RecordMeasure($0, bytes: context.recordBytes[key]) }
          ?? RecordMeasure(), packet: packetNumber))
    working?.add(next)
    return (next, existing == nil)
  }

  // MARK: Answering

  private func result(_ index: Int) -> IngestResult {
    let packet = packets[index].packet
    guard let tail = packet.tail else { return .refused(Problem(.malformedMessage, "empty")) }
    switch plan.verdicts[index] {
    case .refused(let problem): return .refused(problem)
    case .duplicate: return .accepted(receipt(for: packet, tail, .duplicate), released: [])
    case .follows(.incoming(let other)) where other != index:
      guard case .accepted(let receipt, _) = result(other) else { return result(other) }
      guard receipt.status == .applied else { return .accepted(receipt, released: []) }
      return .accepted(self.receipt(for: packet, tail, .duplicate), released: [])
    case .follows(let source):
      guard let receipt = receipts[source] else {
        return .accepted(PacketReceipt(tail: tail, status: .buffered), released: [])
      }
      if case .buffered = source {
        return .accepted(
          self.receipt(for: packet, tail, .duplicate), released: released[index] ?? [])
      }
      return .accepted(receipt, released: released[index] ?? [])
    }
  }

  /// Returns the receipt of a packet, from the history entries of the operations.
  private func receipt(
    for packet: Packet, _ tail: OperationID, _ status: PacketReceipt.Status
  ) -> PacketReceipt {
    var outcomes: [Outcome] = []
    outcomes.reserveCapacity(packet.operations.count)
    var sequences: ClosedRange<SequenceNumber>?
    var isContiguous = true
    for operation in packet.operations {
      guard let known = known[operation.id] else {
        // Pruned: the outcome is lost. The author takes the present values.
        outcomes.append(Outcome(isOverruled: true))
        isContiguous = false
        continue
      }
      outcomes.append(known.outcome)
      // A batch's effects follow it.
      let last = known.sequence + Int64(known.outcome.records ?? 0)
      if let range = sequences, isContiguous {
        isContiguous = known.sequence == range.upperBound + 1
        if isContiguous { sequences = range.lowerBound...last }
      } else if sequences == nil {
        sequences = known.sequence...last
      }
    }
    return PacketReceipt(
      tail: tail, status: status, sequences: isContiguous ? sequences : nil, outcomes: outcomes)
  }

  private func buffer(_ index: Int) -> IngestEffects.BufferedRow {
    let (packet, byteCount) = (packets[index].packet, packets[index].byteCount)
    guard let tail = packet.tail else { preconditionFailure("an empty packet is never buffered") }
    let buffered = BufferedPacket(
      key: BufferedKey(device: packet.device, tail: tail), dependency: packet.dependency,
      continues: packet.continues, byteCount: byteCount, role: packets[index].role)
    return IngestEffects.BufferedRow(packet: buffered, body: packet.encoded())
  }
}

extension Ingest.TouchedRecord {
  /// True if the present state is written: the empty state of an absent record has no row.
  var hasRow: Bool { isChanged && evicted == nil && !(isNew && state.isEmpty) }
}

extension IngestEffects.RecordRow {
  init(_ record: borrowing Ingest.TouchedRecord) {
    self.init(
      key: record.key, sequence: record.state.sequence, wholeBelow: record.state.wholeBelow,
      isDead: !record.state.isAlive, state: record.stored ?? record.state.stored(),
      isNew: record.isNew)
  }
}

extension Dictionary<RecordKey, Int> {
  /// Returns the place of a key; a new key gets `next`.
  fileprivate mutating func place(of key: RecordKey, orNew next: Int) -> Int {
    func read(_ place: inout Int) -> Int { place }
    return read(&self[key, default: next])
  }
}

extension SyncOperation {
  /// True if the columns are just written.
  fileprivate var isPlain: Bool {
    hasOneTime && increments.isEmpty && originals.isEmpty
  }
}
