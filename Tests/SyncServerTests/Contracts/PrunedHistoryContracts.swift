import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let prunedHistories = [
    StoreContract("packets that are sent again after pruning are duplicates and change nothing") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        let packets = [
          author.packet(inserting: ["a", "b"]), author.packet([author.delete("a")]),
          author.packet([author.update("b", ["n": 1])]),
        ]
        for packet in packets { try await space.send(packet) }
        try await space.prune()
        let before = try await space.everything().records
        for packet in packets + packets.reversed() {
          let receipt = try await space.receipt(for: packet)
          try require(receipt.status, is: .duplicate, "a packet sent again")
          try require(receipt.outcomes.count, is: packet.operations.count, "its outcomes")
          let isLast = packet == packets[2]
          try require(receipt.sequences, is: isLast ? 4...4 : nil, "places that are known still")
        }
        try require(try await space.head(), is: 4, "the head")
        try require(try await space.everything().records, is: before, "the data")
        let next = author.packet(inserting: ["c"])
        try require(try await space.receipt(for: next).status, is: .applied, "the next packet")
      }
    },
    StoreContract("a batch that a copied device sends after pruning is applied again") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a", "b"]))
        let batch = try author.batch(where: "title is not null", set: ["title": "two"])
        try await space.send(author.packet([batch]))
        // The batch is pruned; of the effects the last one stays, at the retention horizon.
        try await space.prune()
        var copy = author.renamed(2)
        let before = try await space.everything().records
        let receipt = try await space.receipt(for: copy.packet([batch]))
        try require(receipt.status, is: .applied, "the packet of the copy")
        try require(receipt.outcomes.map(\.records), is: [2], "its effects")
        try require(try await space.everything().records, is: before, "the data")
        try require(try await space.head(), is: 8, "the head")
        let next = copy.packet(inserting: ["c"])
        try require(try await space.receipt(for: next).status, is: .applied, "the copy's work")
      }
    },
    StoreContract(
      "operations made before the retention horizon and sent later are applied in any order"
    ) { under in
      try await under.withSpace { space in
        var (author, other) = (Author(1), Author(2))
        try await space.send(author.packet(inserting: ["a"]))
        let packets = (0..<4).map { number in author.packet(inserting: ["late\(number)"]) }
        try await space.send(other.packet([other.update("a", ["n": 1])]))
        try await space.prune()
        for packet in packets.dropFirst().reversed() {
          try require(
            try await space.receipt(for: packet).status, is: .buffered, "ahead of its turn")
        }
        try require(try await space.receipt(for: packets[0]).status, is: .applied, "the first")
        for packet in packets {
          try require(try await space.receipt(for: packet).status, is: .duplicate, "again")
        }
        try require(try await space.head(), is: 6, "the head")
      }
    },
    StoreContract("a device restored to before its remembered chain is refused, not buffered") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        for number in 0..<3 { try await space.send(author.packet(inserting: ["r\(number)"])) }
        var restored = author
        for number in 0..<110 { try await space.send(author.packet(inserting: ["s\(number)"])) }
        try await space.prune()
        let packet = restored.packet(inserting: ["mine"])
        let refused = try await space.send(packet)
        try require(refused.problem?.code, is: .deviceForked, "what follows a forgotten packet")
        _ = author.packet(inserting: ["lost on the way"])
        let ahead = author.packet(inserting: ["ahead"])
        try require(
          try await space.receipt(for: ahead).status, is: .buffered, "what comes too early")
      }
    },
    StoreContract(
      "writers and pruning run together: refused readers start again and miss no record"
    ) {
      under in
      let store = try await under.open(.standard)
      let second = under.isShared ? try await under.open(.standard) : store
      let summary = try await store.createSpace(.test)
      let sides = [store, second].map { SpaceUnderTest(store: $0, space: summary) }
      let head = SequenceNumber(6 * 40 * 3)
      let readers = try await withThrowingTaskGroup(of: Reader?.self) { group in
        for number in 0..<6 {
          group.addTask {
            try await write(number, to: sides[number % 2])
            return nil
          }
        }
        for side in sides {
          group.addTask {
            while try await side.head() < head { try await side.prune() }
            return nil
          }
        }
        for number in 0..<3 {
          group.addTask { try await read(sides[number % 2], limit: 20 + number * 60, to: head) }
        }
        return try await group.reduce(into: [Reader]()) { if let reader = $1 { $0.append(reader) } }
      }
      try await sides[0].prune()
      let wanted = try await sides[0].everything()
      try require(wanted.changes.allSatisfy(\.state.isAlive), "a tombstone is left")
      try require(wanted.records.count, is: 6 * 20, "records")
      for reader in readers { try require(reader.records, is: wanted.records, "a reader's data") }
      await second.close()
      await store.close()
    },
  ]

  /// Writes 40 packets: a record made and changed, and every other one deleted.
  private static func write(_ number: Int, to space: SpaceUnderTest) async throws {
    var author = Author(UInt64(number + 1))
    for round in 0..<40 {
      let name = "w\(number)-\(round)"
      let operations = [
        author.insert(name, ["title": .text(name)]), author.update(name, ["m": 1]),
        round % 2 == 0 ? author.delete(name) : author.update(name, ["n": 2]),
      ]
      let receipt = try await space.receipt(for: author.packet(operations))
      try require(receipt.status, is: .applied, "packet \(round) of writer \(number)")
    }
  }

  private static func read(
    _ space: SpaceUnderTest, limit: Int, to head: SequenceNumber
  ) async throws -> Reader {
    var reader = Reader()
    while reader.cursor?.applied != head {
      do {
        _ = try await reader.pullPage(from: space, limit: limit)
      } catch let problem as Problem where problem.code == .cursorExpired {
        reader = Reader()
      }
    }
    return reader
  }
}
