import FerryProtocol
import FerrySyncServer

/// A new schema's demands on the existing records.
extension StoreContract {
  static let schemaFits = [
    StoreContract(
      "a refused schema lists the first ten records that do not fit and counts the rest"
    ) {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        // More than are looked at in one round trip; every tenth has no owner, three a wrong size.
        for start in stride(from: 0, to: 1_200, by: 600) {
          let inserts = (start..<start + 600).map { number in
            author.insert(
              identifier(number),
              [
                "size": number % 500 == 1 ? "big" : .integer(Int64(number)),
                "owner": number % 10 == 0 ? .null : "ada",
              ])
          }
          try await space.send(author.packet(inserts))
        }
        let head = try await space.head()
        let json = """
          {"tables":{"tasks":{"columns":{"owner":{"required":true},"size":{"type":"integer"}}}}}
          """
        let problem = try await refused(space, json)
        try require(problem.violationCount, is: 123, "records that do not fit")
        try require(
          problem.violations.map(\.record), is: ["r0000", "r0001"] + (1...8).map { "r00\($0)0" },
          "records that are named")
        try require(Set(problem.violations.map(\.table)), is: ["tasks"], "their tables")
        try require(
          problem.violations.prefix(2).map(\.detail),
          is: [
            "column owner is required and has no value",
            "column size has the type integer, but the value is text",
          ], "what is wrong with them")
        try require(problem.detail.contains("and 113 more"), "the detail: \(problem.detail)")
        try require(try await space.store.schema(of: space.space.id), is: .empty, "the schema")
        try require(try await space.head(), is: head, "the head")
        let read = try afterTravelling(problem)
        try require(read, is: problem, "the problem as it travels")
        try await repair(space, &author)
        try require(try await space.apply(json).get().version, is: 1, "the schema afterwards")
      }
    },
    StoreContract("a schema checks only its new rules, and only on existing records") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(
          author.packet([
            author.insert("gone", ["size": "big"]), author.insert("kept", ["size": 1]),
            author.update("never", ["size": "small"]),
          ]))
        try await space.send(author.packet([author.delete("gone")]))
        let integer = #"{"tables":{"tasks":{"columns":{"size":{"type":"integer"}}}}}"#
        _ = try await space.apply(integer).get()
        // A wider type, another rule beside it, and none at all.
        for json in [
          #"{"tables":{"tasks":{"columns":{"size":{"type":"real"}}}}}"#,
          #"{"tables":{"tasks":{"columns":{"size":{"type":"real"},"note":{"type":"text"}}}}}"#,
          #"{"tables":{"tasks":{"columns":{"size":"max"}},"others":{"unique":[["size"]]}}}"#,
          #"{"tables":{}}"#,
        ] {
          _ = try await space.apply(json).get()
        }
        try await space.send(author.packet([author.update("kept", ["size": 0.5])]))
        let problem = try await refused(space, integer)
        try require(problem.violations.map(\.record), is: ["kept"], "records named")
        try require(
          problem.violations.map(\.detail),
          is: ["column size has the type integer, but the value is real"],
          "what is wrong")
        let missing = #"{"tables":{"tasks":{"columns":{"size":"max","due":{"required":true}}}}}"#
        try require(
          try await refused(space, missing).violations.map(\.detail),
          is: ["column due is required and has no value"], "a column that was never written")
      }
    },
    StoreContract("a schema can keep records that do not fit, except for unique keys") { under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(
          author.packet([
            author.insert("a", ["size": "big"]), author.insert("b", ["size": "big"]),
          ]))
        let both = """
          {"tables":{"tasks":{"columns":{"size":{"type":"integer"}},"unique":[["size"]]}}}
          """
        let checked = try await refused(space, both)
        try require(checked.violationCount, is: 2, "records that do not fit")
        try require(checked.violations.map(\.holder), is: [nil, "a"], "who has the same size")
        let kept = try await refused(space, both, keepsRecords: true)
        try require(kept.violationCount, is: 1, "records that share a key")
        try require(kept.violations.map(\.record), is: ["b"], "the second of them")
        let type = #"{"tables":{"tasks":{"columns":{"size":{"type":"integer"}}}}}"#
        _ = try await space.apply(type, keepsRecords: true).get()
        // Rules in force are not checked on these records again.
        let beside = """
          {"tables":{"tasks":{"columns":{"note":{"type":"text"},"size":{"type":"integer"}}}}}
          """
        _ = try await space.apply(beside).get()
        try require(
          try await space.send(author.packet([author.update("a", ["note": "x"])])).status,
          is: .applied, "another column of a kept record")
        let wrong = try await space.send(author.packet([author.update("a", ["size": "small"])]))
        try require(wrong.problem?.refusals.map(\.code), is: [.schemaViolation], "the same column")
        try require(
          try await space.everything().records[.task("a")], is: ["size": "big", "note": "x"],
          "the kept record")
      }
    },
    StoreContract("the check of a schema gives the answer of the change, and changes nothing") {
      under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet([author.insert("a", ["n": "x"])]))
        try await space.send(author.packet([author.insert("b", ["n": "x"])]))
        let id = space.space.id
        let before = try await space.everything()
        let store = space.store
        func check(_ json: String) async throws -> (Result<SpaceSchema, Problem>, SpaceSchema) {
          let schema = try SpaceSchema(decoding: Array(json.utf8), limits: .standard)
          let answer = try await store.checkSchema(
            schema, of: id, now: SpaceUnderTest.now, consent: SchemaConsent())
          return (answer, schema)
        }
        let misfits = [
          #"{"tables":{"tasks":{"columns":{"n":{"type":"integer"}}}}}"#,
          #"{"tables":{"tasks":{"unique":[["n"]]}}}"#,
        ]
        for json in misfits {
          let (checked, schema) = try await check(json)
          let applied = try await store.applySchema(schema, to: id, now: SpaceUnderTest.now)
          try require(checked, is: applied, "the answers for \(json)")
          guard case .failure(let problem) = checked else {
            throw ContractViolation(description: "\(json) fits")
          }
          try require(problem.violations.isEmpty, is: false, "whether records are named")
        }
        let (fits, schema) = try await check(
          #"{"tables":{"tasks":{"columns":{"n":{"type":"text"}},"unique":[["m"]]}}}"#)
        try require(try fits.get().version, is: 1, "the version that would be in force")
        try require(try await store.schema(of: id).version, is: 0, "the version in force")
        let after = try await space.everything()
        try require(after.cursor, is: before.cursor, "the head")
        let applied = try await store.applySchema(schema, to: id, now: SpaceUnderTest.now).get()
        try require(applied, is: try fits.get(), "the schema that was checked and applied")
        let (losing, fewer) = try await check(#"{"tables":{"tasks":{"unique":[["m"]]}}}"#)
        let refused = try await store.applySchema(fewer, to: id, now: SpaceUnderTest.now)
        try require(losing, is: refused, "the answers for a document that drops a rule")
        let consent = SchemaConsent(dropsRules: true)
        let accepted = try await store.checkSchema(
          fewer, of: id, now: SpaceUnderTest.now, consent: consent)
        try require(try accepted.get().version, is: 2, "the version with consent")
      }
    },
    StoreContract("a check of new unique keys leaves no claim behind") { under in
      try await under.withSpace { space in
        var author = Author(1)
        try await space.send(author.packet([author.insert("a", ["n": "x"])]))
        let schema = try SpaceSchema(
          decoding: Array(#"{"tables":{"tasks":{"unique":[["n"]]}}}"#.utf8), limits: .standard)
        for _ in 0..<2 {
          let answer = try await space.store.checkSchema(
            schema, of: space.space.id, now: SpaceUnderTest.now, consent: SchemaConsent())
          _ = try answer.get()
        }
        // Without the key in force, another record may have the value.
        let result = try await space.send(author.packet([author.insert("b", ["n": "x"])]))
        try require(result.status, is: .applied, "a second record with the value")
      }
    },
  ]
}

private func identifier(_ number: Int) -> String {
  "r" + String(repeating: "0", count: 4 - "\(number)".count) + "\(number)"
}

/// Gives each record the values required by the schema.
private func repair(_ space: SpaceUnderTest, _ author: inout Author) async throws {
  author.base = try await space.head()
  for start in stride(from: 0, to: 1_200, by: 600) {
    let updates = (start..<start + 600).map { number in
      author.update(identifier(number), ["size": 1, "owner": "ada"])
    }
    try await space.send(author.packet(updates))
  }
}

private func refused(
  _ space: SpaceUnderTest, _ json: String, keepsRecords: Bool = false
) async throws -> Problem {
  guard case .failure(let problem) = try await space.apply(json, keepsRecords: keepsRecords) else {
    throw ContractViolation(description: "records do not fit \(json), which is in force")
  }
  try require(problem.code, is: .schemaConflict, "the code")
  return problem
}

/// Returns the problem as a client reads it.
private func afterTravelling(_ problem: Problem) throws -> Problem {
  try unwrap(Problem(decoding: problem.encoded()), "the problem cannot be read")
}
