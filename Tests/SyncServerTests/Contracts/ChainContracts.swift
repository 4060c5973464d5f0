import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let chains = [
    StoreContract("packets in all 120 orders result in the same state and the same answers") {
      under in
      let store = try await under.open(.standard)
      for order in permutations(of: Array(0..<5)) {
        let name = SpaceName.name("order-" + order.map(String.init).joined())
        let space = SpaceUnderTest(store: store, space: try await store.createSpace(name))
        try await checkOrder(order, in: space)
      }
      await store.close()
    },
    StoreContract("packets in every order within one transaction are all applied") { under in
      let store = try await under.open(.standard)
      for order in permutations(of: Array(0..<4)) {
        let name = SpaceName.name("batch-" + order.map(String.init).joined())
        let space = SpaceUnderTest(store: store, space: try await store.createSpace(name))
        var author = Author(1)
        let packets = (0..<4).map { author.packet(inserting: ["r\($0)"]) }
        let results = try await space.send(order.map { packets[$0] })
        for (result, place) in zip(results, order) {
          try require(result.status, is: .applied, "packet \(place) in order \(order)")
          let sequence = SequenceNumber(place + 1)
          try require(result.receipt?.sequences, is: sequence...sequence, "its sequences")
          try require(result.released.isEmpty, "a packet of the batch stands among the released")
        }
      }
      await store.close()
    },
    StoreContract("a packet that is sent twice changes nothing and gets the same answer") { under in
      try await under.withSpace { space in
        var author = Author(1)
        var rival = Author(2)
        rival.wall += 5
        try await space.send(rival.packet([rival.insert("a", ["title": "later"])]))
        let packet = author.packet([
          author.insert("a", ["title": "earlier"]), author.insert("b", ["n": 1]),
        ])
        let first = try await space.receipt(for: packet)
        try require(first.outcomes.first?.isOverruled, is: true, "the older write's outcome")
        let before = try await space.everything()
        let second = try await space.receipt(for: packet)
        try require(second.status, is: .duplicate, "the repeated packet's status")
        try require(second.sequences, is: first.sequences, "its sequences")
        try require(second.outcomes, is: first.outcomes, "its outcomes")
        let twice = try await space.send([packet, packet])
        try require(twice.compactMap(\.status), is: [.duplicate, .duplicate], "both at once")
        let after = try await space.everything()
        try require(after.changes, is: before.changes, "the pull list")
        try require(try await space.head(), is: 3, "the head")
      }
    },
    StoreContract("existing records and operations are found even if their packet looks new") {
      under in
      try await under.withSpace { space in
        var (first, second) = (Author(1), Author(2))
        second.wall += 5
        let id = UniqueID(timestamp: HybridTimestamp(milliseconds: first.wall), random: 1)
        let record = id.description
        let packet = first.packet([first.insert(record, ["title": "first", "n": 1])])
        try await space.send(packet)
        // Another device inserts a record under the same identifier, beside a new one.
        let receipt = try await space.receipt(
          for: second.packet([
            second.insert(record, ["title": "second"]), second.insert("other", ["n": 2]),
          ]))
        try require(
          receipt.outcomes[0].conflicts.map(\.lost), is: [.text("first")],
          "what the insert replaced")
        let merged: [Name: Value] = ["title": "second", "n": 1]
        let before = try await space.everything()
        try require(before.records[.task(record)], is: merged, "the merged record")
        // A copy of the first device has the same operation under another identity.
        var copy = packet
        copy.device = Author(3).device
        try require(
          try await space.receipt(for: copy).status, is: .duplicate, "the copy's status")
        // A packet with an operation that is there and one that is not.
        var third = Author(4)
        third.wall += 9
        let mixed = third.packet([third.insert("last", ["n": 3]), packet.operations[0]])
        let mixedReceipt = try await space.receipt(for: mixed)
        try require(mixedReceipt.status, is: .applied, "the status of the mixed packet")
        let after = try await space.everything()
        try require(
          after.changes.count, is: before.changes.count + 1, "records after the mixed packet")
        try require(after.records[.task(record)], is: merged, "the record after it")
        try require(try await space.head(), is: 4, "the head")
      }
    },
    StoreContract("a new packet that occurs twice in one transaction is applied once") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let packet = author.packet(inserting: ["a", "b"])
        let results = try await space.send([packet, packet])
        try require(results.compactMap(\.status), is: [.applied, .duplicate], "the statuses")
        try require(results[1].receipt?.sequences, is: 1...2, "the second one's sequences")
        try require(try await space.head(), is: 2, "the head")
      }
    },
    StoreContract("a re-chained packet applies only its new operations") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let packet = author.packet(inserting: ["a", "b"])
        try await space.send(packet)
        var renamed = author.renamed(2)
        let next = renamed.insert("c", ["title": "c"])
        let again = renamed.packet(packet.operations + [next])
        let receipt = try await space.receipt(for: again)
        try require(receipt.status, is: .applied, "the re-chained packet")
        try require(receipt.outcomes.count, is: 3, "its outcomes")
        try require(try await space.head(), is: 3, "the head")
        // A packet known as a whole still is a link of the new chain.
        let whole = Packet(
          device: Author(3).device, dependency: nil, operations: packet.operations)
        try require(try await space.send(whole).status, is: .duplicate, "all of it known")
        var third = Author(3)
        let after = Packet(
          device: third.device, dependency: whole.tail, operations: [third.insert("d", [:])])
        try require(try await space.send(after).status, is: .applied, "what follows it")
        try require(try await space.everything().records.count, is: 4, "records")
      }
    },
    StoreContract("a re-chained packet's dependency can arrive after it") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let packet = author.packet(inserting: ["a"])
        try await space.send(packet)
        var renamed = author.renamed(2)
        let first = renamed.packet(packet.operations)
        let second = renamed.packet(inserting: ["b"])
        try require(try await space.send(second).status, is: .buffered, "the later packet")
        let result = try await space.send(first)
        try require(result.status, is: .duplicate, "the packet that is known")
        try require(result.released.map(\.status), is: [.applied], "the later packet's release")
      }
    },
    StoreContract("a fork is refused, and its device continues under a new identity") { under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a"]))
        var clone = author
        try await space.send(author.packet(inserting: ["b"]))
        clone.wall += 1
        let fork = clone.packet(inserting: ["c"])
        let refusal = try await space.send(fork)
        try require(refusal.problem?.code, is: .deviceForked, "the clone's packet")
        try require(try await space.head(), is: 2, "the head after the refusal")
        var renamed = clone.renamed(2)
        let receipt = try await space.receipt(for: renamed.packet(fork.operations))
        try require(receipt.status, is: .applied, "the packet under the new identity")
        var fresh = Author(1)
        fresh.wall += 2
        let restart = fresh.packet(inserting: ["d"])
        try require(
          try await space.send(restart).problem?.code, is: .deviceForked,
          "a chain that begins again")
      }
    },
    StoreContract("an old dependency in the chain is distinguished from an unknown one") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let first = author.packet(inserting: ["first"])
        try await space.send(first)
        let packets = (0..<150).map { author.packet(inserting: ["r\($0)"]) }
        _ = try await space.send(packets)
        var fork = Author(1)
        fork.wall += 60
        let late = Packet(
          device: author.device, dependency: first.tail, operations: [fork.insert("x", [:])])
        try require(
          try await space.send(late).problem?.code, is: .deviceForked, "a fork 150 packets back")
        try require(try await space.send(packets[0]).status, is: .duplicate, "an old packet")
      }
    },
    StoreContract("a reserved table is refused, and the other packets of the batch are accepted") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        var other = Author(2)
        let reserved = author.operation(.insert, "a", [], table: "Ferry_missions")
        let results = try await space.send([
          author.packet([reserved]), other.packet(inserting: ["b"]),
        ])
        try require(results[0].problem?.code, is: .operationRefused, "the reserved table")
        try require(results[1].status, is: .applied, "the other packet")
      }
    },
  ]

  private static func checkOrder(_ order: [Int], in space: SpaceUnderTest) async throws {
    var author = Author(1)
    let packets = [
      author.packet([author.insert("a", ["title": "1", "done": 0])]),
      author.packet([author.update("a", ["title": "2"]), author.insert("b", ["n": 1])]),
      author.packet([author.delete("b")]),
      author.packet([author.insert("b", ["n": 2]), author.update("a", ["done": 1])]),
      author.packet([author.update("b", ["n": 3])]),
    ]
    var receipts: [OperationID: PacketReceipt] = [:]
    for place in order {
      let result = try await space.send(packets[place])
      for receipt in [result.receipt].compactMap({ $0 }) + result.released
      where receipt.status == .applied {
        try require(receipts[receipt.tail] == nil, "a packet is applied twice in order \(order)")
        receipts[receipt.tail] = receipt
      }
    }
    let found = packets.map { $0.tail.flatMap { receipts[$0]?.sequences } }
    try require(found, is: [1...1, 2...3, 4...4, 5...6, 7...7], "sequences in order \(order)")
    try require(
      receipts.values.allSatisfy { $0.outcomes.allSatisfy { $0 == .applied } },
      "an operation lost in order \(order)")
    let reader = try await space.everything()
    try require(
      reader.records,
      is: [.task("a"): ["title": "2", "done": 1], .task("b"): ["n": 3]], "records in \(order)")
    let (waiting, bytes) = try await space.store.buffered(in: space.space.id, of: author.device)
    try require(waiting == 0 && bytes == 0, "\(waiting) packets still wait in order \(order)")
  }
}
