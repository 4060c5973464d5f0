import FerryProtocol
import FerrySyncServer

extension StoreContract {
  private static let three: Limits = {
    var limits = Limits.standard
    limits.tables = 3
    return limits
  }()

  static let tables = [
    StoreContract("a space has a limited number of tables, and one too many refuses its operations")
    { under in
      try await under.withSpace(limits: three) { space in
        var author = Author(1)
        try await space.send(
          author.packet(["a", "b", "c"].map { author.operation(.insert, "r", table: $0) }))
        let fourth = author.packet([
          author.operation(.insert, "s", table: "a"), author.operation(.insert, "r", table: "d"),
          author.operation(.insert, "s", table: "d"), author.operation(.delete, "r", table: "e"),
        ])
        let problem = try await space.send(fourth).problem
        try require(problem?.code, is: .operationRefused, "a fourth table")
        try require(
          problem?.refusals.map(\.operation), is: fourth.operations.dropFirst().map(\.id),
          "the refused operations")
        try require(
          problem?.refusals.map(\.code), is: [.tooManyTables, .tooManyTables, .tooManyTables],
          "their codes")
        // The others' tables, and further records of the same, go on.
        var (again, other) = (Author(3), Author(2))
        try require(
          try await space.send(again.packet([fourth.operations[0]])).status, is: .applied,
          "the rest of the packet")
        let known = ["a", "b", "c"].map { other.operation(.insert, "o", table: $0) }
        try require(try await space.send(other.packet(known)).status, is: .applied, "the others")
        // An update of an absent record that leaves no row makes no table.
        let gone = other.packet([other.operation(.update, "r", table: "f")])
        try require(try await space.send(gone).status, is: .applied, "an update of nothing")
      }
    },
    StoreContract("packets of one commit share the room for tables") { under in
      try await under.withSpace(limits: three) { space in
        var authors = (1...5).map { Author(UInt64($0)) }
        let packets = authors.indices.map { index in
          authors[index].packet([authors[index].operation(.insert, "r", table: "t\(index)")])
        }
        let results = try await space.send(packets)
        try require(results.filter { $0.status == .applied }.count, is: 3, "applied packets")
        try require(
          results.compactMap(\.problem?.code), is: [.operationRefused, .operationRefused],
          "the others")
      }
    },
    StoreContract("a buffered packet's tables count when its turn comes") { under in
      try await under.withSpace(limits: three) { space in
        var (author, other) = (Author(1), Author(2))
        let first = author.packet([author.operation(.insert, "r", table: "a")])
        let second = author.packet([author.operation(.insert, "r", table: "d")])
        try require(try await space.send(second).status, is: .buffered, "the second")
        try await space.send(
          other.packet(["a", "b", "c"].map { other.operation(.insert, "o", table: $0) }))
        try require(try await space.send(first).status, is: .applied, "the first")
        try require(
          try await space.send(second).problem?.refusals.map(\.code), is: [.tooManyTables],
          "the second again")
      }
    },
    StoreContract("tables of the schema have room in a space that a member has filled") { under in
      try await under.withSpace(limits: three) { space in
        var (author, other) = (Author(1), Author(2))
        try await space.send(
          author.packet(["a", "b", "c"].map { author.operation(.insert, "r", table: $0) }))
        _ = try await space.apply(#"{"tables":{"tasks":{},"lists":{}}}"#).get()
        let packet = other.packet([
          other.operation(.insert, "r", table: "tasks"),
          other.operation(.insert, "r", table: "lists"),
        ])
        try require(try await space.send(packet).status, is: .applied, "declared tables")
        let digests = try await space.store.foldDigests(in: space.space.id)
        try require(digests > 0, "no digests")
        let undeclared = other.packet([other.operation(.insert, "r", table: "d")])
        try require(
          try await space.send(undeclared).problem?.refusals.map(\.code), is: [.tooManyTables],
          "another table")
      }
    },
  ]
}
