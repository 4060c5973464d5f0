import FerryProtocol
import FerrySyncServer

extension StoreContract {
  private static let three: Limits = {
    var limits = Limits.standard
    limits.tableColumns = 3
    return limits
  }()

  static let columns = [
    StoreContract(
      "a table has a limited number of columns, and one too many refuses its operations"
    ) { under in
      try await under.withSpace(limits: three) { space in
        var (author, other) = (Author(1), Author(2))
        try await space.send(
          author.packet([
            author.insert("r", ["a": 1, "b": 1]), author.update("r", ["c": 1]),
          ]))
        let elsewhere = author.operation(
          .insert, "s", [Column("e", 1), Column("f", 1)], table: "others")
        let fourth = author.packet([
          author.update("r", ["c": 2]), author.update("r", ["a": 2, "d": 1]),
          author.insert("s", ["e": 1]), elsewhere, author.delete("r"),
        ])
        let problem = try await space.send(fourth).problem
        try require(problem?.code, is: .operationRefused, "a fourth column")
        try require(
          problem?.refusals.map(\.operation), is: fourth.operations[1...2].map(\.id),
          "the refused operations")
        try require(
          problem?.refusals.map(\.code), is: [.tooManyColumns, .tooManyColumns], "their codes")
        // The rest of the packet, and the others, go on.
        var again = Author(3)
        let rest = again.packet([fourth.operations[0], elsewhere, fourth.operations[4]])
        try require(try await space.send(rest).status, is: .applied, "the rest of the packet")
        let known = other.packet([other.insert("o", ["b": 2, "c": 2])])
        try require(try await space.send(known).status, is: .applied, "known columns")
        // The columns of an absent or deleted record count.
        let third = other.operation(.update, "absent", [Column("g", 1)], table: "others")
        try require(
          try await space.send(other.packet([third])).status, is: .applied, "a third column")
        var last = Author(4)
        let more = last.operation(.insert, "o", [Column("h", 1)], table: "others")
        try require(
          try await space.send(last.packet([more])).problem?.refusals.map(\.code),
          is: [.tooManyColumns], "a fourth one there")
        try require(
          try await space.send(other.packet([other.update("o", ["z": 1])]))
            .problem?.refusals.map(\.code), is: [.tooManyColumns], "after the delete")
      }
    },
    StoreContract("packets of one commit, and a batch, share the room for columns") { under in
      try await under.withSpace(limits: three) { space in
        var authors = (1...5).map { Author(UInt64($0)) }
        let packets = authors.indices.map { index in
          authors[index].packet([authors[index].insert("r\(index)", [Name("c\(index)"): 1])])
        }
        let results = try await space.send(packets)
        try require(results.filter { $0.status == .applied }.count, is: 3, "applied packets")
        try require(
          results.compactMap(\.problem?.code), is: [.operationRefused, .operationRefused],
          "the others")
        var author = Author(6)
        let batch = author.packet([try author.batch(where: "true", set: ["d": 1])])
        try require(
          try await space.send(batch).problem?.refusals.map(\.operation),
          is: batch.operations.map(\.id), "a batch")
      }
    },
    StoreContract("columns of the schema have room in a table that a member has filled") { under in
      try await under.withSpace(limits: three) { space in
        var (author, other) = (Author(1), Author(2))
        try await space.send(author.packet([author.insert("r", ["a": 1, "b": 1, "c": 1])]))
        let schema = #"{"tables":{"tasks":{"columns":{"due":{},"done":{"type":"integer"}}}}}"#
        _ = try await space.apply(schema).get()
        let packet = other.packet([other.insert("s", ["due": 1, "done": 1])])
        try require(try await space.send(packet).status, is: .applied, "declared columns")
        let undeclared = other.packet([other.update("s", ["d": 1])])
        try require(
          try await space.send(undeclared).problem?.refusals.map(\.code), is: [.tooManyColumns],
          "another column")
      }
    },
    StoreContract("a packet with more new columns than a slice has rows is applied") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let operations = (0..<3).map { table in
          let columns = (0..<800).map { Column(Name("c\($0)"), .integer(1)) }
          return author.operation(.insert, "r", columns, table: "t\(table)")
        }
        try require(
          try await space.send(author.packet(operations)).status, is: .applied, "the packet")
      }
    },
  ]
}
