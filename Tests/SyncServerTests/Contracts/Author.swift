import FerryProtocol
import FerrySyncServer

/// A device that writes: makes operations with ids and times, and chains them.
struct Author: Sendable {
  let device: DeviceID
  /// The last operation of the last packet made.
  private(set) var tail: OperationID?
  /// Runs ahead of every time seen by the device.
  var clock = HybridClock()
  private var made: UInt64 = 0
  /// The device's wall clock, milliseconds since 1970.
  var wall = SpaceUnderTest.now
  /// The newest change seen by the device.
  var base: SequenceNumber = 0

  /// Authors of different numbers are different devices.
  init(_ number: UInt64) {
    device = DeviceID(UniqueID(high: 0xDE71_CE00_0000_7000, low: number | 1 << 63))
  }

  /// Returns a copy under a new identity, as a device makes it after a report of a fork.
  func renamed(_ number: UInt64) -> Author {
    var author = Author(number)
    author.clock = clock
    author.made = made
    author.wall = wall
    return author
  }

  /// Returns the next operation, in no packet yet.
  mutating func operation(
    _ kind: OperationKind, _ record: String, _ columns: [Column] = [], table: String = "tasks"
  ) -> SyncOperation {
    made += 1
    let time = clock.tick(wall: wall)
    let random = device.value.low << 32 | made
    return SyncOperation(
      id: OperationID(UniqueID(timestamp: time, random: random)),
      key: RecordKey(table: table, record: record), kind: kind, time: time, columns: columns,
      base: base)
  }

  mutating func insert(_ record: String, _ columns: [Name: Value]) -> SyncOperation {
    operation(.insert, record, columns.asColumns)
  }

  mutating func update(_ record: String, _ columns: [Name: Value]) -> SyncOperation {
    operation(.update, record, columns.asColumns)
  }

  mutating func delete(_ record: String) -> SyncOperation { operation(.delete, record) }

  /// Makes an operation that sets columns of the matching records, or deletes them if there are no
  /// columns.
  mutating func batch(
    where text: String, set columns: [Name: Value] = [:], table: String = "tasks"
  ) throws -> SyncOperation {
    var operation = operation(.batch, "", columns.asColumns, table: table)
    let predicate = try RecordPredicate(text, key: "id")
    operation.batch = Batch(columns.isEmpty ? .delete : .set, where: predicate)
    return operation
  }

  /// Returns the next packet of the chain.
  mutating func packet(_ operations: [SyncOperation], continues: Bool = false) -> Packet {
    defer { tail = operations.last?.id }
    return Packet(
      device: device, dependency: tail, operations: operations, continues: continues)
  }

  /// Returns the next packet of the chain, inserting records.
  mutating func packet(inserting records: [String], continues: Bool = false) -> Packet {
    packet(records.map { insert($0, ["title": .text($0)]) }, continues: continues)
  }
}

extension [Name: Value] {
  fileprivate var asColumns: [Column] {
    sorted { $0.key < $1.key }.map { Column($0.key, $0.value) }
  }
}

extension RecordKey {
  static func task(_ record: String) -> RecordKey { RecordKey(table: "tasks", record: record) }
}

extension IngestResult {
  /// `nil` when refused.
  var receipt: PacketReceipt? {
    if case .accepted(let receipt, _) = self { receipt } else { nil }
  }

  var status: PacketReceipt.Status? { receipt?.status }

  var released: [PacketReceipt] {
    if case .accepted(_, let released) = self { released } else { [] }
  }

  /// `nil` when accepted.
  var problem: Problem? {
    if case .refused(let problem) = self { problem } else { nil }
  }
}

/// Returns all orders of a few things.
func permutations<T>(of elements: [T]) -> [[T]] {
  guard elements.count > 1 else { return [elements] }
  return elements.indices.flatMap { index in
    var rest = elements
    let first = rest.remove(at: index)
    return permutations(of: rest).map { [first] + $0 }
  }
}
