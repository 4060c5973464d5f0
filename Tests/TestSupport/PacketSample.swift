import FerryProtocol

extension Packet {
  /// Returns a packet of one device with this many inserts, the ids made from `seed`.
  package static func serviceSample(
    _ seed: UInt64, operations count: Int = 1, record: String? = nil
  )
    -> Packet
  {
    let device = DeviceID(UniqueID(high: 0x7000, low: 0x8000_0000_0000_0000 | seed))
    let operations = (0..<count).map { index in
      let time = HybridTimestamp(milliseconds: 1_790_000_000_000, counter: UInt16(index))
      return SyncOperation(
        id: OperationID(UniqueID(timestamp: time, random: seed)),
        key: RecordKey(table: "tasks", record: record ?? "\(seed)-\(index)"), kind: .insert,
        time: time, columns: [Column("title", .text("hello"))])
    }
    return Packet(device: device, dependency: nil, operations: operations)
  }
}
