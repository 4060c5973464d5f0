import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let schemas = [
    StoreContract("a schema is stored with its version, and devices receive it in their pull list")
    {
      under in
      let json = #"{"tables":{"tasks":{"columns":{"due":{"type":"integer"}}}}}"#
      try await under.withSpace { space in
        try require(
          try await space.store.schema(of: space.space.id), is: .empty, "a new space's schema")
        var author = Author(1)
        try await space.send(author.packet(inserting: ["a"]))
        let applied = try await space.apply(json).get()
        try require(applied.version, is: 1, "the first version")
        try require(try await space.head(), is: 2, "the head")
        let reader = try await space.everything()
        let record = try unwrap(reader.records[SchemaChange.key], "no record holds the schema")
        try require(record["version"], is: 1, "the record's version")
        try require(
          record["document"], is: .text(String(decoding: applied.encoded(), as: UTF8.self)),
          "the record's document")
        var follower = reader
        try await follower.pull(from: space)
        try require(follower.changes.count, is: reader.changes.count, "changes after the schema")
        try require(try await space.apply(json).get(), is: applied, "the same document again")
        try require(try await space.head(), is: 2, "the head after the same document")
        try await space.send(author.packet(inserting: ["b"]))
        try require(try await space.head(), is: 3, "the head after a packet")
      }
      try await under.withSpace { space in
        let kept = try await space.store.schema(of: space.space.id)
        try require(kept.version, is: 1, "the version after a restart")
        try require(kept.tables["tasks"]?.type(of: "due"), is: .integer, "the rules")
      }
    },
    StoreContract(
      "a schema replaces only the version that its author has seen, and drops rules with consent"
    ) { under in
      try await under.withSpace { space in
        _ = try await space.apply(#"{"version":1,"tables":{}}"#).get()
        let second = try await space.apply(#"{"version":2,"tables":{"t":{"write":"admin"}}}"#).get()
        try require(second.version, is: 2, "the second version")
        for stale in [1, 2, 4] {
          let answer = try await space.apply("{\"version\":\(stale),\"tables\":{\"u\":{}}}")
          guard case .failure(let problem) = answer else {
            throw ContractViolation(description: "version \(stale) replaced version 2")
          }
          try require(problem.code, is: .schemaConflict, "version \(stale)")
        }
        try require(try await space.store.schema(of: space.space.id), is: second, "the schema")
        try require(try await space.head(), is: 2, "the head")
        let third = try await space.apply(#"{"tables":{}}"#).get()
        try require(third.version, is: 3, "a document without a version")
        var reader = Reader()
        try await reader.pull(from: space)
        try require(reader.records[SchemaChange.key]?["version"], is: 3, "what devices see")
        try await requireConsent(space)
      }
    },
    StoreContract("every server instance checks operations against the schema in force") { under in
      let store = try await under.open(.standard)
      let second = under.isShared ? try await under.open(.standard) : store
      let space = SpaceUnderTest(store: store, space: try await store.createSpace(.test))
      let other = SpaceUnderTest(store: second, space: space.space)
      var author = Author(1)
      try require(
        try await other.send(author.packet(inserting: ["a"])).status, is: .applied, "no schema")
      for (json, code) in [
        (#"{"tables":{"tasks":{"write":"admin"}}}"#, RefusalCode.forbiddenTable),
        (#"{"tables":{"tasks":{"columns":{"title":{"type":"integer"}}}}}"#, .schemaViolation),
        (#"{"tables":{"tasks":{"columns":{"due":{"required":true}}}}}"#, .schemaViolation),
      ] {
        _ = try await space.apply(json, keepsRecords: true).get()
        var visitor = author
        let packet = visitor.packet(inserting: ["b"])
        for side in [space, other] {
          let refusals = try await side.send(packet).problem?.refusals
          try require(refusals?.map(\.code), is: [code], json)
        }
      }
      _ = try await space.apply(#"{"tables":{}}"#).get()
      try require(
        try await other.send(author.packet(inserting: ["b"])).status, is: .applied, "no rules")
      await second.close()
      await store.close()
    },
    StoreContract("the schema in force decides conflicts") { under in
      try await under.withSpace { space in
        var one = Author(1)
        var two = Author(2)
        two.wall += 5
        _ = try await space.apply(
          #"{"tables":{"tasks":{"columns":{"votes":"counter","due":"max","title":"server-wins"}}}}"#
        ).get()
        let made = one.insert("a", ["votes": 1, "due": 5, "title": "first"])
        try await space.send(one.packet([made]))
        (one.base, two.base) = (2, 2)
        for (author, due, title) in [(0, 9, "second"), (1, 7, "third")] as [(Int, Int64, String)] {
          var writer = author == 0 ? one : two
          var update = writer.update(
            "a", ["votes": 10, "due": .integer(due), "title": .text(title)])
          update.increments = ["votes"]
          try require(
            try await space.send(writer.packet([update])).status, is: .applied, "an update")
        }
        let record = try await space.everything().records[.task("a")]
        try require(
          record, is: ["votes": 21, "due": 9, "title": "second"], "the record after the conflicts")
      }
    },
    StoreContract("rules give way to an authority, which is an admin") { under in
      var (one, two) = (Author(1), Author(2))
      two.wall += 5
      var packets: [Packet] = []
      try await under.withSpace { space in
        try await space.send(one.packet([one.insert("a", ["n": 9, "title": "first"])]))
        _ = try await space.apply(
          """
          {"tables":{"tasks":{"write":"admin","columns":{"title":{"type":"text","required":true},
            "n":"max"}}}}
          """
        ).get()
        (one.base, two.base) = (2, 2)
        packets = [
          two.packet([two.insert("b", ["title": 7])]),
          two.packet([
            two.insert("c", [:]), two.update("a", ["n": 5, "title": .null]),
          ]),
        ]
        for place in packets.indices { packets[place].isAuthoritative = true }
        let refused = try await space.send(packets[0]).problem?.refusals
        try require(refused?.map(\.code), is: [.forbiddenTable], "a writer's packet")
        try require(
          try await space.send(packets[1], role: .admin).status, is: .buffered, "the second one")
      }
      try await under.withSpace { space in
        try require(
          try await space.send(packets[0], role: .admin).status, is: .applied, "an admin's packet")
        let records = try await space.everything().records
        try require(records[.task("b")], is: ["title": 7], "a value of another type")
        try require(records[.task("a")], is: ["n": 5, "title": .null], "values against the rules")
        let plain = one.packet([one.update("a", ["title": .null])])
        let refusals = try await space.send(plain, role: .admin).problem?.refusals
        try require(refusals?.map(\.code), is: [.schemaViolation], "a packet without authority")
      }
    },
    StoreContract("a buffered packet keeps its sender's role") { under in
      var author = Author(1)
      let packets = (0..<2).map { author.packet(inserting: ["r\($0)"]) }
      try await under.withSpace { space in
        _ = try await space.apply(#"{"tables":{"tasks":{"write":"admin"}}}"#).get()
        try require(try await space.send(packets[1]).status, is: .buffered, "a writer's packet")
      }
      try await under.withSpace { space in
        let result = try await space.send(packets[0], role: .admin)
        try require(result.status, is: .applied, "an admin's packet")
        try require(result.released.isEmpty, "a writer wrote a table for admins")
        try require(
          try await space.send(packets[1], role: .admin).status, is: .applied, "by an admin")
      }
    },
    StoreContract("a space checks its minimum protocol version on packets and on pulls") { under in
      try await under.withSpace { space in
        _ = try await space.apply(#"{"minimumProtocol":2,"tables":{}}"#).get()
        var author = Author(1)
        let packet = author.packet(inserting: ["a"])
        let refused = try await space.send(packet).problem
        try require(refused?.code, is: .upgradeRequired, "a packet")
        try require(refused?.code.action, is: .fix, "what to do")
        var request = PullRequest(cursor: nil, limit: 10, byteLimit: 1_000, device: nil)
        let page = try await space.store.changes(in: space.space.id, request, now: 0)
        guard case .failure(let problem) = page, problem.code == .upgradeRequired else {
          throw ContractViolation(description: "an old device is given a page")
        }
        request.protocolVersion = 2
        _ = try await space.store.changes(in: space.space.id, request, now: 0).get()
        let newer = IncomingPacket(packet, byteCount: 1, protocolVersion: 2)
        let batch = try await space.store.ingest([newer], into: space.space.id, now: 0)
        try require(batch.results[0].status, is: .applied, "a newer device's packet")
      }
    },
    StoreContract("no packet of a concurrent writer enters after a schema that forbids it") {
      under in
      try await under.withSpace { space in
        try await withThrowingTaskGroup(of: Void.self) { group in
          for number in 1...8 {
            group.addTask {
              var author = Author(UInt64(number))
              for round in 0..<25 {
                let packet = author.packet(inserting: ["w\(number)-\(round)"])
                if try await space.send(packet).problem != nil { return }
              }
            }
          }
          group.addTask {
            _ = try await space.apply(#"{"tables":{"tasks":{"write":"admin"}}}"#).get()
          }
          try await group.waitForAll()
        }
        let reader = try await space.everything()
        let place = try unwrap(
          reader.changes.first { $0.key == SchemaChange.key }?.sequence, "no schema")
        try require(
          reader.changes.allSatisfy { $0.sequence <= place }, "a write came after the schema")
      }
    },
  ]
}

extension SpaceUnderTest {
  /// Applies a schema document, which may drop rules unless the contract is about them.
  func apply(
    _ json: String, keepsRecords: Bool = false, dropsRules: Bool = true
  ) async throws -> Result<SpaceSchema, Problem> {
    let document = try SpaceSchema(decoding: Array(json.utf8), limits: .standard)
    return try await store.applySchema(
      document, to: space.id, now: Self.now,
      consent: SchemaConsent(keepsRecords: keepsRecords, dropsRules: dropsRules))
  }
}

/// Requires that a document drops no rule and no definition unless its sender consents.
private func requireConsent(_ space: SpaceUnderTest) async throws {
  let former = """
    {"tables":{"tasks":{"columns":{"due":{"type":"integer"}},"unique":[["title"]],
     "definition":{"key":"id","columns":[{"name":"due","type":"integer"}]}}}}
    """
  let applied = try await space.apply(former, dropsRules: false).get()
  let head = try await space.head()
  let fewer = #"{"tables":{"tasks":{"unique":[["title"]]},"lists":{"write":"admin"}}}"#
  guard case .failure(let problem) = try await space.apply(fewer, dropsRules: false) else {
    throw ContractViolation(description: "rules were dropped")
  }
  try require(problem.code, is: .schemaLosses, "the code")
  let losses = ["the definition of tasks", "the type of column due of tasks"]
  try require(problem.losses, is: losses, "the losses")
  try require(problem.lossCount, is: 2, "their number")
  try require(try await space.store.schema(of: space.space.id), is: applied, "the schema")
  try require(try await space.head(), is: head, "the head")
  let dropped = try await space.apply(fewer).get()
  try require(dropped.version, is: applied.version + 1, "the version with consent")
  // The client repeats a request after a lost answer.
  try require(
    try await space.apply(fewer, dropsRules: false).get(), is: dropped, "the same document")
}
