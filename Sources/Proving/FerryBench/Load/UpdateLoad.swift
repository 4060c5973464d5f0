import FerryProtocol
import FerrySyncClient

/// A device that makes records, and then changes them again and again.
struct UpdateLoad: Sendable {
  private let device: DeviceID
  private let records: [TaskRow]
  private var clock = HybridClock()
  private var dependency: OperationID?
  private var made = 0

  /// Creates a device. `seed` decides the rows' content; identifiers are new each time.
  init(seed: UInt64, records count: Int) {
    var random = SeededRandom(seed: seed)
    let now = HybridTimestamp(milliseconds: SystemClock.milliseconds())
    device = DeviceID(UniqueID(timestamp: now, random: .random(in: .min ... .max)))
    records = (0..<count).map { _ in
      TaskRow(id: UniqueID(timestamp: now, random: random.next()), random: &random)
    }
  }

  /// Returns the next packet: inserts first, then updates of one column.
  mutating func packet(of count: Int) -> Packet {
    let operations = (0..<count).map { _ in operation() }
    let packet = Packet(device: device, dependency: dependency, operations: operations)
    dependency = packet.tail
    return packet
  }

  private mutating func operation() -> SyncOperation {
    let time = clock.tick(wall: SystemClock.milliseconds())
    let row = records[made % records.count]
    let isNew = made < records.count
    made += 1
    return SyncOperation(
      id: OperationID(UniqueID(timestamp: time, random: .random(in: .min ... .max))),
      key: RecordKey(table: TaskRow.table, record: row.id), kind: isNew ? .insert : .update,
      time: time, columns: isNew ? row.columns : [Column("priority", .integer(Int64(made)))])
  }
}
