import FerryProtocol
import FerrySyncClient

/// A device that only writes: its packets, each with a dependency on the one before.
struct DeviceLoad: Sendable {
  let device: DeviceID
  private var clock = HybridClock()
  private var dependency: OperationID?
  private var random: SeededRandom

  /// Creates a device. `seed` decides the rows' content; identifiers are new each time.
  init(seed: UInt64) {
    random = SeededRandom(seed: seed)
    let now = HybridTimestamp(milliseconds: SystemClock.milliseconds())
    device = DeviceID(UniqueID(timestamp: now, random: .random(in: .min ... .max)))
  }

  /// Returns the next packet: `count` inserts.
  mutating func packet(of count: Int) -> Packet {
    let operations = (0..<count).map { _ in insert() }
    let packet = Packet(device: device, dependency: dependency, operations: operations)
    dependency = packet.tail
    return packet
  }

  /// Packets as they travel.
  mutating func encodedPackets(_ packets: Int, of count: Int) -> [[UInt8]] {
    (0..<packets).map { _ in packet(of: count).encoded() }
  }

  private mutating func insert() -> SyncOperation {
    let time = clock.tick(wall: SystemClock.milliseconds())
    let row = TaskRow(id: UniqueID(timestamp: time, random: random.next()), random: &random)
    return SyncOperation(
      id: OperationID(UniqueID(timestamp: time, random: .random(in: .min ... .max))),
      key: RecordKey(table: TaskRow.table, record: row.id), kind: .insert, time: time,
      columns: row.columns)
  }
}
