import FerryProtocol

/// The decision which packets are applied, in which order, which wait and which are refused. It
/// looks at chains and at known operations, never at data.
struct IngestPlanner {
  /// A possible next link of a device's chain.
  private struct Link {
    let key: BufferedKey
    let dependency: OperationID?
    let continues: Bool
    let byteCount: Int
    let source: IngestPlan.Source
    /// True if all of it is in the history already, sent by a copy of the device. It waits for
    /// nothing then, even if it continues: the rest of the transaction is there as well.
    var isKnown = false
  }

  /// The place of a packet's dependency in the device's chain.
  private enum Placement {
    case next
    case past
    case unknown
  }

  let context: IngestContext
  private let packets: [IncomingPacket]
  private var plan = IngestPlan()
  private(set) var chains: [DeviceID: DeviceChain]
  /// Waiting links, in the order of arrival.
  private var waiting: [DeviceID: [Link]] = [:]
  /// The principals of devices, after this batch.
  private var owners: [DeviceID: Principal]
  /// The number of new devices in this batch, by account.
  private var claimed: [Principal: Int64] = [:]
  /// The number of devices without an owner before.
  private var claimedOfSpace: Int64 = 0
  /// Operations brought into the history by this batch.
  private let placed = PlacedOperations()

  init(_ context: IngestContext, _ packets: [IncomingPacket]) {
    self.context = context
    self.packets = packets
    chains = context.chains
    owners = context.owners
    for buffered in context.buffered {
      if context.refused[.buffered(buffered.key)] != nil {
        plan.unbuffered.append(buffered.key)
        continue
      }
      let link = Link(
        key: buffered.key, dependency: buffered.dependency, continues: buffered.continues,
        byteCount: buffered.byteCount, source: .buffered(buffered.key))
      waiting[buffered.key.device, default: []].append(link)
    }
  }

  consuming func planned() -> IngestPlan {
    for index in packets.indices {
      plan.verdicts.append(.follows(.incoming(index)))
      admit(index)
    }
    if !context.refused.isEmpty { dropFollowers() }
    boundWaiting()
    return plan
  }

  // MARK: One packet

  private mutating func admit(_ index: Int) {
    let packet = packets[index].packet
    guard let tail = packet.tail else {
      plan.verdicts[index] = .refused(Problem(.malformedMessage, "the packet has no operations"))
      return
    }
    if let problem = fault(index) {
      plan.verdicts[index] = .refused(problem)
      return
    }
    claim(packet.device, for: packets[index].principal)
    let key = BufferedKey(device: packet.device, tail: tail)
    if let verdict = finalVerdict(packet, tail) {
      plan.verdicts[index] = verdict
      return
    }
    let link = Link(
      key: key, dependency: packet.dependency, continues: packet.continues,
      byteCount: packets[index].byteCount, source: .incoming(index), isKnown: isKnown(packet))
    if let equal = waiting[packet.device]?.first(where: { $0.key == key }) {
      if equal.dependency == link.dependency && equal.continues == link.continues,
        equal.isKnown || !link.isKnown
      {
        plan.verdicts[index] = .follows(equal.source)
        return
      }
      // The device, or a copy of it, cut the packets again meanwhile: the newest counts.
      remove(equal, verdict: .follows(link.source))
    }
    waiting[packet.device, default: []].append(link)
    advance(packet.device, closer: index)
  }

  /// Returns the reason why a packet is not even looked at.
  private func fault(_ index: Int) -> Problem? {
    if isTooLate(index) { return .noLongerOpen }
    if let problem = ownershipFault(index) { return problem }
    if !context.refused.isEmpty, let problem = context.refused[.incoming(index)] { return problem }
    if let problem = Problem.upgradeRequired(
      from: packets[index].protocolVersion, to: context.space.minimumProtocol)
    {
      return problem
    }
    guard let cursor = packets[index].cursor else {
      if context.schema?.requiresCursor == true { return .cursorRequired }
      return baseFault(packets[index].packet)
    }
    return lostHistory(cursor) ?? baseFault(packets[index].packet)
  }

  /// Returns whether a packet is from a caller who needs a token by now.
  private func isTooLate(_ index: Int) -> Bool {
    context.hasHadTokens && packets[index].needsOpenServer
  }

  /// Returns the problem of a packet with a `base` above the head: no device can have seen such a
  /// base yet. It would count every value as seen by the author, and disable the protection of
  /// later values from others. An honest device sends one only if the server lost history.
  private func baseFault(_ packet: Packet) -> Problem? {
    let head = context.space.head
    let operation = packet.operations.first { $0.base > head && context.known[$0.id] == nil }
    return operation.map {
      Problem(
        .cursorAhead,
        "operation \($0.id) has the base \($0.base), but the space's head is \(head)")
    }
  }

  // MARK: Ownership

  /// Returns the reason why the sender may not use the device; `nil` if it may.
  private func ownershipFault(_ index: Int) -> Problem? {
    let (device, principal) = (packets[index].packet.device, packets[index].principal)
    if let owner = owners[device] {
      return owner.leaves(deviceTo: principal) ? nil : .deviceTaken(device)
    }
    let account = principal.account
    let count = (context.usage[account]?.devices ?? 0) + (claimed[account] ?? 0)
    let (quotas, all) = (context.quotas, context.total.devices + claimedOfSpace)
    let advice = "The server forgets identifiers that are unused for a long time"
    if count >= quotas.devices {
      return Problem(
        .storageQuota,
        "you have used \(count) device identifiers in this space; \(quotas.devices) are allowed. "
          + advice)
    }
    if Quotas.admits(1, own: count, all: all, limit: quotas.spaceDevices) { return nil }
    return Problem(
      .storageQuota,
      "all users have used \(all) device identifiers in this space; \(quotas.spaceDevices) are "
        + "allowed. \(advice)")
  }

  /// Makes the first principal with a device's identifier its owner. Devices from before tokens
  /// existed have no owner: such a device goes to the first principal with a credential.
  private mutating func claim(_ device: DeviceID, for principal: Principal) {
    if owners[device] == principal { return }
    if owners[device] == nil { claimedOfSpace += 1 }
    owners[device] = principal
    plan.owners[device] = principal
    claimed[principal.account, default: 0] += 1
  }

  /// Returns the problem of a packet from another history. In this history the packet would get a
  /// place before the operations it follows, or claim to have seen later writes of others.
  private func lostHistory(_ cursor: Cursor) -> Problem? {
    let space = context.space
    let place = cursor.anchor.flatMap { context.known[$0.operation]?.place }
    let end = cursor.anchor?.timeline.flatMap { context.timelineEnds[$0] }
    return KnownHistory(
      epoch: space.epoch, head: space.head, retentionHorizon: space.retentionHorizon,
      timelineEnd: end
    ).fault(of: cursor, anchored: place)
  }

  /// Returns the answer for a packet that can no longer be a link of the chain; `nil` if it still
  /// can.
  private func finalVerdict(_ packet: Packet, _ tail: OperationID) -> IngestPlan.Verdict? {
    switch placement(of: packet.dependency, in: packet.device) {
    case .next: return nil
    case .past:
      return isKnown(packet) || wasApplied(packet, tail)
        ? .duplicate : .refused(forked(packet.device, packet.dependency))
    case .unknown where wasApplied(packet, tail): return .duplicate
    case .unknown:
      // Even if all of it is known, it is a link. A copy of the device has sent it cut otherwise,
      // and a transaction before it may wait for it.
      return nil
    }
  }

  /// Returns `true` if all operations of the packet are in the history.
  private func isKnown(_ packet: Packet) -> Bool {
    packet.operations.allSatisfy { author(of: $0.id) != nil }
  }

  private func placement(of dependency: OperationID?, in device: DeviceID) -> Placement {
    // The dependency of a new device may be known by the device's former identifier. Then the
    // packet with it comes under this identifier, too.
    guard let chain = chains[device] else { return dependency == nil ? .next : .unknown }
    guard let dependency else { return .past }
    if dependency == chain.tail { return .next }
    if chain.recent.contains(dependency) { return .past }
    // Under another device's chain too: a copy of this one took a new identity and sent it.
    if author(of: dependency) != nil || isForgotten(dependency, by: chain) { return .past }
    return .unknown
  }

  /// Returns the device of the chain with which an operation came; `nil` if it is not in the
  /// history.
  func author(of id: OperationID) -> DeviceID? {
    context.known[id]?.device ?? placed.device(of: id)
  }

  private func forked(_ device: DeviceID, _ dependency: OperationID?) -> Problem {
    let place = dependency.map { "after operation \($0)" } ?? "at the start of its chain"
    return Problem(
      .deviceForked, "device \(device) has already sent other operations \(place)")
  }

  // MARK: The chain

  /// Applies every complete run from the chain's tail on.
  private mutating func advance(_ device: DeviceID, closer: Int) {
    while let run = completeRun(device) {
      plan.runs.append(IngestPlan.Run(sources: run.map(\.source), closer: closer))
      var overtaken: Set<OperationID?> = [chains[device]?.tail]
      for link in run {
        place(link, &overtaken)
        if chains[device]?.append(link.key.tail) == nil {
          chains[device] = DeviceChain(tail: link.key.tail)
        }
      }
      plan.chains[device] = chains[device]
      overtaken.remove(chains[device]?.tail)
      let links = waiting[device] ?? []
      waiting[device] = []
      for link in links where !run.contains(where: { $0.source == link.source }) {
        waiting[device, default: []].append(link)
        if overtaken.contains(link.dependency) { overtake(link) }
      }
    }
  }

  /// Marks a packet's operations as present in the history from here on.
  private mutating func place(_ link: Link, _ overtaken: inout Set<OperationID?>) {
    let operations: [SyncOperation]
    switch link.source {
    case .incoming(let index): operations = packets[index].packet.operations
    case .buffered(let key):
      plan.unbuffered.append(key)
      operations = context.bodies[key]?.operations ?? []
      if operations.isEmpty { plan.missing.append(key) }
    }
    placed.add(operations, of: link.key.device)
    if (waiting[link.key.device]?.count ?? 0) > 1 {
      overtaken.formUnion(operations.lazy.map(\.id))
      overtaken.insert(link.key.tail)
    }
  }

  /// Removes a packet after another one got the position behind the dependency.
  private mutating func overtake(_ link: Link) {
    guard case .incoming(let index) = link.source else {
      // It was never acknowledged as applied, so the device still has it.
      return remove(link, verdict: nil)
    }
    let packet = packets[index].packet
    remove(link, verdict: finalVerdict(packet, link.key.tail))
  }

  private mutating func remove(_ link: Link, verdict: IngestPlan.Verdict?) {
    waiting[link.key.device]?.removeAll { $0.source == link.source }
    switch link.source {
    case .buffered(let key): plan.unbuffered.append(key)
    case .incoming(let index): if let verdict { plan.verdicts[index] = verdict }
    }
  }

  /// Returns the packets from the tail on, up to the end of a transaction.
  private func completeRun(_ device: DeviceID) -> [Link]? {
    guard let links = waiting[device], !links.isEmpty else { return nil }
    var used = Set<OperationID>()
    return completeRun(after: chains[device]?.tail, among: links, &used)
  }

  private func completeRun(
    after tail: OperationID?, among links: [Link], _ used: inout Set<OperationID>
  ) -> [Link]? {
    for link in links where link.dependency == tail && used.insert(link.key.tail).inserted {
      if !link.continues || link.isKnown { return [link] }
      if let rest = completeRun(after: link.key.tail, among: links, &used) {
        return [link] + rest
      }
    }
    return nil
  }

  // MARK: Refusals

  /// Drops the buffered packets of a device after a refusal: the device cuts its pending operations
  /// again. Packets in this batch that wait for the refused one get the same answer.
  private mutating func dropFollowers() {
    let refused = context.refused.compactMap { source, problem -> (BufferedKey, Problem)? in
      // A stranger who uses a device's identifier drops nothing of it.
      if case .incoming(let index) = source, plan.verdicts[index] != .refused(problem) {
        return nil
      }
      return key(of: source).map { ($0, problem) }
    }
    for (key, problem) in refused.sorted(by: { $0.0 < $1.0 }) {
      let links = waiting[key.device] ?? []
      let followers = connectedTails(links, from: key.tail)
      for link in links {
        let asking = plan.verdicts.indices.filter { plan.verdicts[$0] == .follows(link.source) }
        guard asking.isEmpty || followers.contains(link.key.tail) else { continue }
        remove(link, verdict: nil)
        for index in asking { plan.verdicts[index] = .refused(problem) }
      }
    }
  }

  private func key(of source: IngestPlan.Source) -> BufferedKey? {
    switch source {
    case .buffered(let key): key
    case .incoming(let index):
      packets[index].packet.tail.map {
        BufferedKey(device: packets[index].packet.device, tail: $0)
      }
    }
  }

  // MARK: Bounds

  /// Buffers the remaining packets, within the limits. Packets after the chain's tail compete only
  /// with each other for room. So packets behind them can never keep them out.
  private mutating func boundWaiting() {
    var shares = BufferShares(context, plan)
    for device in waiting.keys.sorted() {
      let links = waiting[device] ?? []
      let owner = owners[device] ?? .anonymous
      let connected = connectedTails(links, from: chains[device]?.tail)
      var kept: [Link] = []
      for link in links {
        guard case .incoming(let index) = link.source else {
          kept.append(link)
          continue
        }
        let isConnected = connected.contains(link.key.tail)
        let rivals = isConnected ? kept.filter { connected.contains($0.key.tail) } : kept
        if let problem = overflow(rivals, link) ?? shares.overflow(link.byteCount, of: owner) {
          plan.verdicts[index] = .refused(problem)
        } else {
          kept.append(link)
          shares.add(link.byteCount, of: owner)
          plan.buffered.append(index)
        }
      }
    }
    plan.buffered.sort()
  }

  private func connectedTails(_ links: [Link], from tail: OperationID?) -> Set<OperationID> {
    var connected = Set<OperationID>()
    var ends: [OperationID?] = [tail]
    while let end = ends.popLast() {
      for link in links where link.dependency == end && connected.insert(link.key.tail).inserted {
        ends.append(link.key.tail)
      }
    }
    return connected
  }

  private func overflow(_ kept: [Link], _ link: Link) -> Problem? {
    let limits = context.limits
    let bytes = kept.reduce(link.byteCount) { $0 + $1.byteCount }
    guard kept.count >= limits.bufferedPackets || bytes > limits.bufferedBytes else { return nil }
    return Problem(
      .bufferFull,
      """
      \(kept.count) packets of device \(link.key.device) are buffered; the limit is \
      \(limits.bufferedPackets) packets and \(limits.bufferedBytes) bytes. First send the packet \
      after the device's applied tail
      """)
  }
}
