import FerryProtocol
import FerrySyncServer
import FerryTestSupport

extension StoreContract {
  static let histories = (1...4).map { seed in
    StoreContract("random history \(seed): pages add up to the records of the store") {
      under in
      try await under.withSpace { space in
        var history = RandomHistory(seed: UInt64(seed))
        for _ in 0..<120 { try await history.step(in: space) }
        try await history.finish(in: space)
      }
    }
  }
}

/// A random history with a model.
///
/// Devices write at random, out of order and more than once, and readers page at random. The model
/// merges all operations one by one, in the order of the sequences they were given.
private struct RandomHistory {
  private var random: SeededGenerator
  private var authors = (1...4).map { Author(UInt64($0)) }
  private var readers = [Reader](repeating: Reader(), count: 3)
  /// Packets not acknowledged yet, as they may arrive.
  private var flying: [Packet] = []
  private var sent: [OperationID: Packet] = [:]
  private var sequences: [SequenceNumber: (SyncOperation, DeviceID)] = [:]

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  mutating func step(in space: SpaceUnderTest) async throws {
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<4: makePackets()
    case 4..<7: try await deliver(in: space)
    default:
      let reader = Int.random(in: 0..<readers.count, using: &random)
      let limit = Int.random(in: 1..<8, using: &random)
      _ = try await readers[reader].pullPage(from: space, limit: limit)
    }
  }

  /// Delivers the remaining packets, then compares.
  mutating func finish(in space: SpaceUnderTest) async throws {
    while !flying.isEmpty { try await deliver(in: space) }
    try require(
      sequences.keys.sorted(), is: Array(1...max(1, try await space.head())), "sequences")
    let wanted = model()
    try require(try await space.everything().records, is: wanted, "a new reader's data")
    for index in readers.indices {
      try await readers[index].pull(from: space, limit: 3)
      try require(readers[index].records, is: wanted, "reader \(index)'s data")
    }
  }

  private mutating func makePackets() {
    let index = Int.random(in: 0..<authors.count, using: &random)
    authors[index].wall += Int64.random(in: -50...50, using: &random)
    authors[index].base = SequenceNumber.random(
      in: 0...SequenceNumber(sequences.count), using: &random)
    let parts = Int.random(in: 1...3, using: &random)
    for part in 1...parts {
      var operations: [SyncOperation] = []
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        operations.append(makeOperation(by: index))
      }
      let packet = authors[index].packet(operations, continues: part < parts)
      if let tail = packet.tail { sent[tail] = packet }
      flying.insert(packet, at: Int.random(in: 0...flying.count, using: &random))
    }
  }

  private mutating func makeOperation(by index: Int) -> SyncOperation {
    let record = "r\(Int.random(in: 0..<8, using: &random))"
    let kind = OperationKind.allCases[Int.random(in: 0..<3, using: &random)]
    var columns: [Column] = []
    if kind != .delete {
      for name in ["a", "b", "c"] where Bool.random(using: &random) {
        columns.append(Column(name, .integer(Int64.random(in: 0..<5, using: &random))))
      }
    }
    return authors[index].operation(kind, record, columns)
  }

  /// Delivers a few packets in one transaction; some stay in flight as if their response were lost.
  private mutating func deliver(in space: SpaceUnderTest) async throws {
    let count = min(flying.count, Int.random(in: 1...3, using: &random))
    let packets = Array(flying.prefix(count))
    let results = try await space.send(packets)
    var again: [Packet] = []
    for (packet, result) in zip(packets, results) {
      let receipt = try unwrap(result.receipt, "refused: \(String(describing: result.problem))")
      for receipt in [receipt] + result.released { try note(receipt) }
      if Int.random(in: 0..<4, using: &random) == 0 { again.append(packet) }
    }
    flying.removeFirst(count)
    flying += again
  }

  private mutating func note(_ receipt: PacketReceipt) throws {
    guard let range = receipt.sequences else { return }
    let packet = try unwrap(sent[receipt.tail], "a receipt for a packet that was never sent")
    for (operation, sequence) in zip(packet.operations, range) {
      if let (known, _) = sequences[sequence] {
        try require(known.id, is: operation.id, "the operation at \(sequence)")
      }
      sequences[sequence] = (operation, packet.device)
    }
  }

  private func model() -> [RecordKey: [Name: Value]] {
    var states: [RecordKey: RecordState] = [:]
    for (sequence, (operation, device)) in sequences.sorted(by: { $0.key < $1.key }) {
      let stamp = Stamp(time: operation.time, device: device)
      _ = states[operation.key, default: RecordState()].merge(
        operation, stamp: stamp, sequence: sequence)
    }
    return states.filter(\.value.isAlive).mapValues { state in
      Dictionary(uniqueKeysWithValues: state.columns.map { ($0.name, $0.value) })
    }
  }
}
