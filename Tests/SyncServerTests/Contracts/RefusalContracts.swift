import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let refusals = [
    StoreContract("a refused packet names its operations and leaves nothing in the store") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        let first = author.packet(inserting: ["a"])
        try await space.send(first)
        let before = try await space.everything()
        let bad = author.operation(.insert, "m", [], table: "ferry_missions")
        let good = author.insert("b", ["n": 1])
        let worse = author.operation(.delete, "s", table: "SQLITE_master")
        let problem = try unwrap(
          try await space.send(author.packet([bad, good, worse])).problem, "the packet is taken")
        try require(problem.code, is: .operationRefused, "the problem")
        try require(problem.refusals.map(\.operation), is: [bad.id, worse.id], "what is named")
        try require(
          problem.refusals.map(\.code), is: [.reservedTable, .reservedTable], "the codes")
        let after = try await space.everything()
        try require(after.records, is: before.records, "records")
        try require(after.cursor, is: before.cursor, "the head")
        let again = Packet(device: author.device, dependency: first.tail, operations: [good])
        try require(try await space.send(again).status, is: .applied, "the rest, cut anew")
      }
    },
    StoreContract("a refused transaction of several packets is not stored in part") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let bad = author.operation(.insert, "m", [], table: "ferry_x")
        let parts = [
          author.packet(inserting: ["a"], continues: true), author.packet([bad], continues: true),
          author.packet(inserting: ["c"]),
        ]
        try require(try await space.send(parts[0]).status, is: .buffered, "the first part")
        try require(try await space.send(parts[1]).status, is: .buffered, "the second part")
        let closing = try await space.send(parts[2])
        try require(closing.problem?.refusals.map(\.operation), is: [bad.id], "what is named")
        let waiting = try await space.store.buffered(in: space.space.id, of: author.device)
        try require(waiting == (0, 0), "\(waiting.packets) parts are still buffered")
        try require(try await space.head(), is: 0, "the head")
        var whole = Author(1)
        whole.wall += 10
        let rest = whole.packet(inserting: ["a", "c"])
        try require(try await space.send(rest).status, is: .applied, "the rest, cut anew")
      }
    },
    StoreContract("a buffered packet that can never be applied is dropped when its turn comes") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        let first = author.packet(inserting: ["a"])
        let second = author.packet([author.operation(.insert, "m", [], table: "ferry_x")])
        let third = author.packet(inserting: ["c"])
        try await space.send(third)
        try await space.send(second)
        let result = try await space.send(first)
        try require(result.status, is: .applied, "the packet that let it in")
        try require(result.released.isEmpty, "a refused packet is among the released")
        let waiting = try await space.store.buffered(in: space.space.id, of: author.device)
        try require(waiting == (0, 0), "\(waiting.packets) packets are still buffered")
        try require(
          try await space.send(second).problem?.code, is: .operationRefused, "it, sent again")
      }
    },
    StoreContract("refusals of some devices do not affect the other devices' packets") { under in
      try await under.withSpace { space in
        var authors = (1...9).map { Author(UInt64($0)) }
        let packets = authors.indices.map { index in
          let isBad = index.isMultiple(of: 3)
          return authors[index].packet([
            authors[index].operation(
              .insert, "r\(index)", [Column("n", 1)], table: isBad ? "ferry_x" : "tasks")
          ])
        }
        let results = try await space.send(packets)
        for (index, result) in results.enumerated() {
          let isBad = index.isMultiple(of: 3)
          try require(
            result.problem?.code, is: isBad ? .operationRefused : nil, "packet \(index)")
        }
        try require(try await space.head(), is: 6, "the head")
        try require(try await space.everything().records.count, is: 6, "records")
      }
    },
  ]
}
