import FerryProtocol

/// Packets of one space on their way into the store; pure. While one transaction runs, new packets
/// gather and go together in the next one. So under load packets share a transaction's cost, and
/// without load no packet waits.
///
/// Devices that send one small packet after another come back right after their answers. So the
/// next transaction may wait after a transaction with small packets of several devices. It begins
/// when as many packets are there again, or when the caller ends the wait (compare `commit_delay`
/// of PostgreSQL). Any packet that comes meanwhile waits with them.
///
/// The accounts of the senders take turns. So a sender with hundreds of waiting packets delays
/// another one's for one transaction at most. If the queue is full, its packets are the first
/// without room.
///
/// A packet with batch operations goes alone, in a separate lane. Finding the matching records
/// takes time, needs no lock of the space, and uses a budget not shared with any other packet.
/// Packets of other devices run beside it; packets of the same device keep their order.
///
/// The caller finds the waiting request of a packet by its `Ticket`.
struct CommitQueue<Ticket> {
  /// The limits of a transaction, and of the queue.
  struct Bounds: Sendable, Equatable {
    /// Packets in one transaction.
    var batchPackets = 64
    /// Operations in one transaction; a single packet may exceed it.
    var batchOperations = 20_000
    /// Bytes in one transaction; a single packet may exceed it.
    var batchBytes = 16 << 20
    /// The most packets of the space in the queue.
    var waitingPackets = 1_024
    /// Bytes of those packets.
    var waitingBytes = 64 << 20
    /// The fewest packets, of a transaction and behind it, for which the next transaction waits.
    var gatheredPackets = 4
    /// Operations, of a transaction or behind it, from which on the next one does not wait.
    var gatheredOperations = 256
  }

  struct Entry {
    let packet: IncomingPacket
    let ticket: Ticket
    let lane: Lane
    let account: Principal

    init(packet: IncomingPacket, ticket: Ticket) {
      (self.packet, self.ticket) = (packet, ticket)
      account = packet.principal.account
      let isSearching = packet.packet.operations.contains { $0.batch != nil }
      lane = isSearching ? .searching : .plain
    }

    var device: DeviceID { packet.packet.device }
    var operationCount: Int { packet.packet.operations.count }
  }

  /// Transactions that may run at the same time: one of each lane.
  enum Lane: CaseIterable, Sendable {
    case plain
    /// One packet with batch operations.
    case searching
  }

  /// Packets of a transaction that has not ended.
  private struct Batch {
    var devices: Set<DeviceID>
    var operations: Int

    init(_ entries: [Entry]) {
      devices = Set(entries.map(\.device))
      operations = entries.reduce(0) { $0 + $1.operationCount }
    }
  }

  private let bounds: Bounds
  private var waiting: [Entry] = []
  private(set) var waitingBytes = 0
  private var waitingOperations = 0
  /// Packets in the queue of the searching lane.
  private var waitingSearches = 0
  private var underWay: [Lane: Batch] = [:]
  /// The wait for devices to come back, in the plain lane.
  private var gathering: (number: Int, packets: Int)?
  private var gatherings = 0

  init(bounds: Bounds) { self.bounds = bounds }

  /// Packets in the queue.
  var waitingCount: Int { waiting.count }

  /// True if nothing waits and nothing is under way.
  var isIdle: Bool { waiting.isEmpty && underWay.isEmpty && gathering == nil }

  /// Adds a packet to the queue. Returns the packets without room if the queue is full: the newest
  /// ones of the account with most.
  mutating func add(_ packet: IncomingPacket, ticket: Ticket) -> [Entry] {
    let entry = Entry(packet: packet, ticket: ticket)
    waiting.append(entry)
    count(entry, 1)
    var refused: [Entry] = []
    while waiting.count > 1,
      waiting.count > bounds.waitingPackets || waitingBytes > bounds.waitingBytes
    {
      let weighsBytes = waiting.count <= bounds.waitingPackets
      let entry = waiting.remove(at: newestOfHeaviest { weighsBytes ? $0.packet.byteCount : 1 })
      count(entry, -1)
      refused.append(entry)
    }
    return refused
  }

  private mutating func count(_ entry: Entry, _ sign: Int) {
    if entry.lane == .searching { waitingSearches += sign }
    waitingBytes += sign * entry.packet.byteCount
    waitingOperations += sign * entry.operationCount
  }

  /// Returns the place of the newest packet of the account with the greatest weight. Among equal
  /// accounts, the account of the newest packet counts.
  private func newestOfHeaviest(_ weight: (Entry) -> Int) -> Int {
    var weights: [Principal: Int] = [:]
    for entry in waiting { weights[entry.account, default: 0] += weight(entry) }
    let most = weights.values.max()
    return waiting.lastIndex { weights[$0.account] == most } ?? waiting.count - 1
  }

  /// The places of the waiting packets in turns of their accounts. The packets of an account keep
  /// their order.
  private var turns: [Int] {
    var places: [Principal: [Int]] = [:]
    var accounts: [Principal] = []
    for (place, entry) in waiting.enumerated() {
      if places[entry.account] == nil { accounts.append(entry.account) }
      places[entry.account, default: []].append(place)
    }
    if accounts.count < 2 { return Array(waiting.indices) }
    let rounds = places.values.map(\.count).max() ?? 0
    return (0..<rounds).flatMap { round in
      accounts.compactMap { account in
        places[account].flatMap { round < $0.count ? $0[round] : nil }
      }
    }
  }

  /// Returns the packets of a lane's next transaction, in turns of their accounts. It is empty
  /// while one is under way, and if no waiting packet may go.
  mutating func dequeueBatch(_ lane: Lane) -> [Entry] {
    guard underWay[lane] == nil, lane == .plain || waitingSearches > 0 else { return [] }
    if lane == .plain, let wanted = gathering?.packets {
      guard isEnough(wanted) else { return [] }
      gathering = nil
    }
    // Devices with packets behind earlier ones.
    var held = Set<DeviceID>()
    for (other, batch) in underWay where other != lane { held.formUnion(batch.devices) }
    var batch: [Int] = []
    var operations = 0
    var bytes = 0
    for place in turns {
      let entry = waiting[place]
      if entry.lane != lane || held.contains(entry.device) {
        held.insert(entry.device)
        continue
      }
      operations += entry.operationCount
      bytes += entry.packet.byteCount
      if !batch.isEmpty, operations > bounds.batchOperations || bytes > bounds.batchBytes { break }
      batch.append(place)
      if lane == .searching || batch.count == bounds.batchPackets { break }
    }
    return remove(batch, to: lane)
  }

  /// Moves packets from the waiting ones into a lane.
  private mutating func remove(_ batch: [Int], to lane: Lane) -> [Entry] {
    guard !batch.isEmpty else { return [] }
    let entries = batch.map { waiting[$0] }
    for entry in entries { count(entry, -1) }
    let places = Set(batch)
    waiting = waiting.indices.filter { !places.contains($0) }.map { waiting[$0] }
    underWay[lane] = Batch(entries)
    return entries
  }

  /// Records the end of the last batch of a lane, with success or failure.
  ///
  /// - Returns: The number of the wait for its devices to come back, for ``endGathering(_:)``;
  ///   `nil` if the next transaction may begin at once.
  @discardableResult
  mutating func finishBatch(_ lane: Lane) -> Int? {
    guard let batch = underWay.removeValue(forKey: lane), lane == .plain, underWay.isEmpty,
      batch.operations < bounds.gatheredOperations
    else { return nil }
    let wanted = min(batch.devices.count + waiting.count, bounds.batchPackets)
    guard wanted >= bounds.gatheredPackets, !isEnough(wanted), waitingSearches == 0 else {
      return nil
    }
    gatherings += 1
    gathering = (gatherings, wanted)
    return gatherings
  }

  /// Ends a wait for devices to come back, unless it has ended.
  mutating func endGathering(_ number: Int) {
    if gathering?.number == number { gathering = nil }
  }

  /// Returns whether so many packets wait, or more than small ones.
  private func isEnough(_ packets: Int) -> Bool {
    waiting.count >= packets
      || waitingOperations >= min(bounds.gatheredOperations, bounds.batchOperations)
      || waitingBytes >= bounds.batchBytes
  }
}
