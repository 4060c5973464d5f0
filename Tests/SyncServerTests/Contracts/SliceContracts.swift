import FerryProtocol
import FerrySyncServer

extension StoreContract {
  private static let small: Limits = {
    var limits = Limits.standard
    limits.recordStateBytes = 64 << 10
    limits.packetStateBytes = 1 << 20
    return limits
  }()

  /// Memory for three of the records below.
  private static let room = IngestRoom(bytes: 130_000, allowsSlices: true)
  private static let text = Value.text(String(repeating: "x", count: 40_000))

  /// Sends a packet in slices. Before, sends it with too little memory: this changes nothing.
  private static func send(
    _ packet: Packet, to space: SpaceUnderTest
  ) async throws -> IngestResult {
    let incoming = [IncomingPacket(packet, byteCount: 100)]
    let (store, id) = (space.store, space.space.id)
    let head = try await space.head()
    let few = IngestRoom(bytes: room.bytes, allowsSlices: false)
    do {
      _ = try await store.ingest(incoming, into: id, now: SpaceUnderTest.now, room: few)
      throw ContractViolation(description: "the packet fits into the memory")
    } catch let error as StoreError {
      try require(error, is: .needsMemory, "the error")
    }
    try require(try await space.head(), is: head, "the head")
    return try await store.ingest(incoming, into: id, now: SpaceUnderTest.now, room: room)
      .results[0]
  }

  private static func fill(
    _ wide: [String], _ author: inout Author, of space: SpaceUnderTest
  ) async throws {
    for name in wide { try await space.send(author.packet([author.insert(name, ["v": text])])) }
  }

  private static let wide = (10..<22).map { "r\($0)" }

  static let slices = [
    StoreContract("a packet whose records do not fit into memory is applied in slices") { under in
      try await under.withSpace(limits: small) { space in
        var (author, other) = (Author(1), Author(2))
        try await fill(wide, &author, of: space)
        // Each record twice, to leave the memory and come back; and a new one.
        other.base = 12
        let packet = other.packet(
          wide.map { other.update($0, ["x": 1]) } + [other.insert("new", ["x": 1])]
            + wide.reversed().map { other.update($0, ["y": .text($0)]) })
        try require(try await send(packet, to: space).status, is: .applied, "the packet")
        try require(try await send(packet, to: space).status, is: .duplicate, "the packet again")
        let keys = wide.map { RecordKey.task($0) }
        for key in keys {
          let page = try await space.store.records([key], in: space.space.id, now: 0).get()
          var columns: [Name: Value] = [:]
          try page.withUnsafeBytes { bytes in
            _ = try PageReader.read(bytes, limits: .standard) { change in
              for column in change.state.columns { columns[column.name] = column.value }
            }
          }
          let wanted: [Name: Value] = ["v": text, "x": 1, "y": .text(key.record.text)]
          try require(columns, is: wanted, "a record")
        }
        try require(try await space.head(), is: 12 + 25, "the head")
        let usage = try await space.usage()
        try require(usage.records, is: 13, "the records")
        try require(usage.bytes > 12 * 40_000, "the bytes of all records")
      }
    },
    StoreContract("a packet that is refused after some of its slices changes nothing") { under in
      try await under.withSpace(limits: small) { space in
        var (author, other) = (Author(1), Author(2))
        try await fill(wide, &author, of: space)
        let usage = try await space.usage()
        let writes = wide.map { other.update($0, ["x": 1]) }
        let excess = other.update("r10", ["w": text])
        let problem = try await send(other.packet(writes + [excess]), to: space).problem
        try require(problem?.refusals.map(\.code), is: [.recordTooLarge], "the refusal")
        try require(problem?.refusals.map(\.operation), is: [excess.id], "what it wide")
        try require(try await space.head(), is: 12, "the head")
        try require(try await space.usage(), is: usage, "the usage")
        var third = Author(3)
        let rest = third.packet(wide.map { third.update($0, ["x": 2]) })
        try require(try await send(rest, to: space).status, is: .applied, "the next packet")
      }
    },
    StoreContract("unique keys are judged in the same way when records leave the memory") { under in
      try await under.withSpace(limits: small) { space in
        _ = try await space.apply(#"{"tables":{"tasks":{"unique":[["k"]]}}}"#).get()
        var (author, other) = (Author(1), Author(2))
        for (index, name) in wide.enumerated() {
          let columns: [Name: Value] = ["v": text, "k": .integer(Int64(index))]
          try await space.send(author.packet([author.insert(name, columns)]))
        }
        // All keys move on by one record at once.
        other.wall += 1_000
        let moved = wide.indices.map { index in
          other.update(wide[index], ["k": .integer(Int64((index + 1) % wide.count))])
        }
        let packet = other.packet(moved)
        try require(try await send(packet, to: space).status, is: .applied, "a rotation")
        let taken = other.packet(
          wide.map { other.update($0, ["x": 1]) } + [other.update("r10", ["k": 5])])
        let problem = try await send(taken, to: space).problem
        try require(problem?.refusals.map(\.code), is: [.uniqueTaken], "the refusal")
      }
    },
    StoreContract("a batch over records that do not fit into memory is applied in slices") {
      under in
      try await under.withSpace(limits: small) { space in
        var (author, other) = (Author(1), Author(2))
        try await fill(wide, &author, of: space)
        other.base = 12
        let batch = try other.batch(where: "v <> ''", set: ["done": 1])
        let again = try other.batch(where: "done = 1", set: ["seen": 1])
        let packet = other.packet([batch, again])
        let result = try await send(packet, to: space)
        guard case .accepted(let receipt, _) = result else {
          throw ContractViolation(description: "\(result)")
        }
        try require(receipt.outcomes.map(\.records), is: [12, 12], "the matches")
        try require(try await space.head(), is: 12 + 26, "the head")
      }
    },
    StoreContract(
      "the lost values of one packet in its answer are bounded, also when it comes again"
    ) { under in
      var limits = small
      limits.pageBytes = 100_000
      try await under.withSpace(limits: limits) { space in
        var (author, other) = (Author(1), Author(2))
        try await fill(wide, &author, of: space)
        other.wall += 1_000
        let deletes = other.packet(wide.map { other.delete($0) })
        for status in [PacketReceipt.Status.applied, .duplicate] {
          let incoming = [IncomingPacket(deletes, byteCount: 100)]
          let result = try await space.store.ingest(
            incoming, into: space.space.id, now: SpaceUnderTest.now, room: room
          ).results[0]
          guard case .accepted(let receipt, _) = result else {
            throw ContractViolation(description: "the packet is refused")
          }
          try require(receipt.status, is: status, "the status")
          try require(
            receipt.outcomes.filter { !$0.conflicts.isEmpty }.count, is: 2, "outcomes in full")
          let others = receipt.outcomes.filter { $0.omitted > 0 }
          try require(others.count, is: 10, "the others")
          // The history alone knows whether they were overruled: their records are fetched.
          try require(
            others.allSatisfy(\.isOverruled), is: status == .duplicate, "whether all are fetched")
        }
      }
    },
  ]
}
