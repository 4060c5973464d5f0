import FerryProtocol

/// Packets of one space on their way into its store; pure. While one transaction is under way,
/// those that arrive gather and go together in the next: under load a transaction's cost is
/// shared, and without load nobody waits.
///
/// A packet with batch operations goes alone, in a lane of its own: finding what they match takes
/// time, is paid from a budget that no other packet's operations may use up, and needs no lock of
/// the space. Packets of other devices go on beside it; those of its own device keep their order.
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

    var device: DeviceID { packet.packet.device }
    var lane: Lane {
      packet.packet.operations.contains { $0.batch != nil } ? .searching : .plain
    }
  }

  /// What is under way at the same time: one transaction of each.
  enum Lane: CaseIterable, Sendable {
    case plain
    /// One packet with batch operations.
    case searching
  }

  private let bounds: Bounds
  private var waiting: [Entry] = []
  private(set) var waitingBytes = 0
  /// The devices of the packets that have been taken and not been finished.
  private var underWay: [Lane: Set<DeviceID>] = [:]

  init(bounds: Bounds) { self.bounds = bounds }

  /// Packets that wait.
  var waitingCount: Int { waiting.count }

  /// Whether nothing waits and nothing is under way.
  var isIdle: Bool { waiting.isEmpty && underWay.isEmpty }

  /// Lines a packet up; `false` when the queue is full.
  mutating func add(_ packet: IncomingPacket, ticket: Ticket) -> Bool {
    guard waiting.count < bounds.waitingPackets,
      waiting.isEmpty || waitingBytes + packet.byteCount <= bounds.waitingBytes
    else { return false }
    waiting.append(Entry(packet: packet, ticket: ticket))
    waitingBytes += packet.byteCount
    return true
  }

  /// The packets of a lane's next transaction, in the order of their arrival; empty while one is
  /// under way, and when none waits that may go.
  mutating func takeBatch(_ lane: Lane) -> [Entry] {
    guard underWay[lane] == nil else { return [] }
    // Devices whose packets are held up by earlier ones.
    var held = Set<DeviceID>()
    for (other, devices) in underWay where other != lane { held.formUnion(devices) }
    var batch: [Entry] = []
    var rest: [Entry] = []
    var operations = 0
    var bytes = 0
    var isFull = false
    for entry in waiting {
      if isFull || entry.lane != lane || held.contains(entry.device) {
        held.insert(entry.device)
        rest.append(entry)
        continue
      }
      operations += entry.packet.packet.operations.count
      bytes += entry.packet.byteCount
      if !batch.isEmpty, operations > bounds.batchOperations || bytes > bounds.batchBytes {
        isFull = true
        rest.append(entry)
        continue
      }
      batch.append(entry)
      isFull = lane == .searching || batch.count == bounds.batchPackets
    }
    guard !batch.isEmpty else { return [] }
    waiting = rest
    waitingBytes -= batch.reduce(0) { $0 + $1.packet.byteCount }
    underWay[lane] = Set(batch.map(\.device))
    return batch
  }

  /// The batch that a lane took last has ended, well or not.
  mutating func finishBatch(_ lane: Lane) { underWay[lane] = nil }
}
