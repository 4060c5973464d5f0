import FerryProtocol

/// Packets of one space on their way into its store; pure. While one transaction runs, new packets
/// gather and go together in the next one. So under load packets share a transaction's cost, and
/// without load no packet waits.
///
/// A packet with batch operations goes alone, in a separate lane. Finding the matching records
/// takes time, needs no lock of the space, and uses a budget that no other packet may share.
/// Packets of other devices run beside it; packets of the same device keep their order.
///
/// The caller finds the waiting request of a packet by its `Ticket`.
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

  /// Transactions that may run at the same time: one of each lane.
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

  /// Adds a packet to the queue; returns `false` if the queue is full.
  mutating func add(_ packet: IncomingPacket, ticket: Ticket) -> Bool {
    guard waiting.count < bounds.waitingPackets,
      waiting.isEmpty || waitingBytes + packet.byteCount <= bounds.waitingBytes
    else { return false }
    waiting.append(Entry(packet: packet, ticket: ticket))
    waitingBytes += packet.byteCount
    return true
  }

  /// Returns the packets of a lane's next transaction, in the order of their arrival. It is empty
  /// while one is under way, and if no waiting packet may go.
  mutating func takeBatch(_ lane: Lane) -> [Entry] {
    guard underWay[lane] == nil else { return [] }
    // Devices with packets that wait for earlier ones.
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

  /// Notes that the last batch of a lane has ended, with success or failure.
  mutating func finishBatch(_ lane: Lane) { underWay[lane] = nil }
}
