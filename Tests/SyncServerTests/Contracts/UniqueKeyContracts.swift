import FerryProtocol
import FerrySyncServer

private let schema = #"{"tables":{"tasks":{"unique":[["email"],["project","number"]]}}}"#

extension StoreContract {
  static let uniqueKeys = [
    StoreContract("a unique key can be taken, refused, freed and taken again") { under in
      var author = Author(1)
      var rival = Author(2)
      try await under.withSpace { space in
        _ = try await space.apply(schema).get()
        try await space.send(author.packet([author.insert("a", ["email": "x"])]))
        try await refuse(&rival, "b", ["email": "x"], holder: "a", in: space)
        try await refuse(&rival, "c", ["email": "x"], holder: "a", in: space)
      }
      try await under.withSpace { space in
        try await refuse(&rival, "b", ["email": "x"], holder: "a", in: space)
        try await space.send(author.packet([author.update("a", ["email": "y"])]))
        try await take(&rival, "b", ["email": "x"], in: space)
        try await refuse(&rival, "c", ["email": "y"], holder: "a", in: space)
        try await space.send(author.packet([author.delete("a")]))
        try await take(&rival, "c", ["email": "y"], in: space)
        try require(
          try await space.everything().records,
          is: [
            .task("b"): ["email": "x"], .task("c"): ["email": "y"],
            SchemaChange.key: try await space.everything().records[SchemaChange.key] ?? [:],
          ], "records")
      }
    },
    StoreContract("unique keys compare values of any length by class and bytes") { under in
      try await under.withSpace { space in
        _ = try await space.apply(schema).get()
        var author = Author(1)
        var rival = Author(2)
        let long = String(repeating: "é", count: 100_000)
        let values: [Value] = [
          "", "a", "A", "e\u{301}", "\u{e9}", 1, .integer(.max), 0.5, .real(.infinity),
          .blob([]), .blob([0]), .text(long), .text(long + "x"), .text("\u{0}"), "'", "[\"a\"]",
        ]
        for (number, value) in values.enumerated() {
          try await take(&author, "r\(number)", ["email": value], in: space)
        }
        for (number, value) in values.enumerated() {
          try await refuse(&rival, "s\(number)", ["email": value], holder: "r\(number)", in: space)
        }
        try await refuse(&rival, "t", ["email": .real(1)], holder: "r5", in: space)
        try await take(&rival, "u", ["email": .null], in: space)
        try await take(&rival, "v", ["email": .null], in: space)
        try await take(&rival, "w", ["project": "a"], in: space)
        try await take(&rival, "x", ["project": "a"], in: space)
      }
    },
    StoreContract("records can swap the values of a unique key within one packet") { under in
      try await under.withSpace { space in
        _ = try await space.apply(schema).get()
        var author = Author(1)
        try await space.send(
          author.packet([
            author.insert("a", ["project": "p", "number": 1]),
            author.insert("b", ["project": "p", "number": 2]),
          ]))
        let swap = author.packet([
          author.update("a", ["number": 2]), author.update("b", ["number": 1]),
        ])
        try require(try await space.send(swap).status, is: .applied, "the swap")
        var rival = Author(2)
        try await refuse(&rival, "c", ["project": "p", "number": 1], holder: "b", in: space)
        try await refuse(&rival, "d", ["project": "p", "number": 2], holder: "a", in: space)
      }
    },
    StoreContract("a new unique key is claimed for the existing records, or refused") { under in
      try await under.withSpace { space in
        var author = Author(1)
        let inserts = (0..<1_200).map { author.insert("r\($0)", ["n": .integer(Int64($0))]) }
        try await space.send(author.packet(Array(inserts[..<600])))
        try await space.send(author.packet(Array(inserts[600...])))
        try await space.send(author.packet([author.insert("twin", ["n": 7])]))
        let json = #"{"tables":{"tasks":{"unique":[["n"]]}}}"#
        guard case .failure(let problem) = try await space.apply(json) else {
          throw ContractViolation(description: "two records hold one key")
        }
        try require(problem.code, is: .schemaConflict, "the problem")
        try require(
          problem.detail.contains("r7") && problem.detail.contains("twin"),
          "the detail names not both: \(problem.detail)")
        try require(try await space.store.schema(of: space.space.id), is: .empty, "the schema")
        try await space.send(author.packet([author.delete("twin")]))
        _ = try await space.apply(json).get()
        var rival = Author(2)
        try await refuse(&rival, "x", ["n": 1_199], holder: "r1199", in: space)
        try await refuse(&rival, "x", ["n": 0], holder: "r0", in: space)
        try await take(&rival, "x", ["n": 1_200], in: space)
        _ = try await space.apply(#"{"tables":{}}"#).get()
        try await take(&rival, "y", ["n": 5], in: space)
        guard case .failure = try await space.apply(json) else {
          throw ContractViolation(description: "a key that was given up is still claimed")
        }
      }
    },
    StoreContract("one of many devices that claim a key at the same time gets it") { under in
      let store = try await under.open(.standard)
      let second = under.isShared ? try await under.open(.standard) : store
      let summary = try await store.createSpace(.test)
      let sides = [store, second].map { SpaceUnderTest(store: $0, space: summary) }
      _ = try await sides[0].apply(schema).get()
      let winners = try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<16 {
          group.addTask {
            var author = Author(UInt64(number + 1))
            var won = 0
            for value in 0..<10 {
              var attempt = author
              let packet = attempt.packet([
                attempt.insert("r\(number)-\(value)", ["email": .integer(Int64(value))])
              ])
              guard try await sides[number % 2].send(packet).problem == nil else { continue }
              author = attempt
              won += 1
            }
            return won
          }
        }
        return try await group.reduce(0, +)
      }
      try require(winners, is: 10, "claims that were granted")
      try require(try await sides[0].head(), is: 11, "the head")
      await second.close()
      await store.close()
    },
  ]
}

/// Inserts a record that must be accepted.
private func take(
  _ author: inout Author, _ record: String, _ columns: [Name: Value], in space: SpaceUnderTest
) async throws {
  let receipt = try await space.receipt(for: author.packet([author.insert(record, columns)]))
  try require(receipt.status, is: .applied, "record \(record)")
}

/// Inserts a record that must be rejected; the author continues from the earlier state.
private func refuse(
  _ author: inout Author, _ record: String, _ columns: [Name: Value], holder: Name,
  in space: SpaceUnderTest
) async throws {
  var attempt = author
  // The author's later ids are not these.
  attempt.wall += 1
  let operation = attempt.insert(record, columns)
  let problem = try await space.send(attempt.packet([operation])).problem
  try require(
    problem?.refusals.map(\.code), is: [.uniqueTaken], "record \(record) with \(columns)")
  try require(problem?.refusals.map(\.holder), is: [holder], "who holds what \(record) claims")
}
