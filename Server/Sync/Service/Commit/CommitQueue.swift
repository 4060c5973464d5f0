/// Packets of one space on their way into its store; pure. While one transaction is under way,
/// those that arrive gather and go together in the next: under load a transaction's cost is
/// shared, and without load nobody waits.
///
/// `Ticket` is how the caller finds who waits for a packet.
struct CommitQueue<Ticket> {
  /// How much goes together, and how much may wait.
  struct Bounds: Sendable, Equatable {
    /// Packets in one transaction.
    var batchPackets = 64
    /// Operations in one transaction; a single packet may exceed it.
    var batchOperations = 20_000
    /// Bytes in one transaction; a single packet may exceed it.
    var batchBytes = 16 << 20
    /// Packets of the space that wait.
    var waitingPackets = 1_024
    /// Bytes of those packets.
    var waitingBytes = 64 << 20
  }

  struct Entry {
    var packet: IncomingPacket
    var ticket: Ticket
  }

  private let bounds: Bounds
  private var waiting: [Entry] = []
  private(set) var waitingBytes = 0
  /// Whether a batch has been taken and not been finished.
  private(set) var isCommitting = false

  init(bounds: Bounds) { self.bounds = bounds }

  /// Packets that wait.
  var waitingCount: Int { waiting.count }

  /// Whether nothing waits and nothing is under way.
  var isIdle: Bool { waiting.isEmpty && !isCommitting }

  /// Lines a packet up; `false` when the queue is full.
  mutating func add(_ packet: IncomingPacket, ticket: Ticket) -> Bool {
    guard waiting.count < bounds.waitingPackets,
      waiting.isEmpty || waitingBytes + packet.byteCount <= bounds.waitingBytes
    else { return false }
    waiting.append(Entry(packet: packet, ticket: ticket))
    waitingBytes += packet.byteCount
    return true
  }

  /// The packets of the next transaction, in the order of their arrival; empty while one is under
  /// way, and when nothing waits. A packet with batch operations goes alone: finding what they match
  /// takes time, and is paid from a budget that no other packet's operations may use up.
  mutating func takeBatch() -> [Entry] {
    guard !isCommitting else { return [] }
    var count = 0
    var operations = 0
    var bytes = 0
    for entry in waiting.prefix(bounds.batchPackets) {
      let isAlone = entry.packet.packet.operations.contains { $0.batch != nil }
      if isAlone, count > 0 { break }
      operations += entry.packet.packet.operations.count
      bytes += entry.packet.byteCount
      if count > 0, operations > bounds.batchOperations || bytes > bounds.batchBytes { break }
      count += 1
      if isAlone { break }
    }
    let batch = Array(waiting.prefix(count))
    waiting.removeFirst(count)
    waitingBytes -= batch.reduce(0) { $0 + $1.packet.byteCount }
    isCommitting = !batch.isEmpty
    return batch
  }

  /// The batch taken last has ended, well or not.
  mutating func finishBatch() { isCommitting = false }
}
