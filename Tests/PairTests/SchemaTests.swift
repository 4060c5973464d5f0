import Ferry
import FerryTestSupport
import Foundation
import Testing

/// A space's schema: shown, changed and enforced, by real processes.
@Suite(.hangLimit)
struct SchemaTests {
  private static let document = """
    {"tables":{"notes":{"columns":{"n":{"type":"integer"}},"unique":[["body"]]},
     "rates":{"write":"admin"}}}
    """

  /// Writes a document into a file of the device's folder.
  private func file(_ text: String, of device: Device) throws -> String {
    let file = device.directory.file("schema.json")
    try Data(text.utf8).write(to: file)
    return file.path
  }

  @Test(
    "the command line and the library apply and show a schema",
    arguments: StoreKind.allCases)
  func applyAndShow(_ kind: StoreKind) async throws {
    let server = try await Server.start(kind)
    let one = try await Device.joined(server.url)
    let two = try await Device.joined(server.url)
    #expect(try await one.open().schema() == .empty)
    let path = try file(Self.document, of: one)
    let applied = try await one.ferry("schema", "apply", path)
    #expect(applied.output == "version 1 is in force\n")
    let schema = try await two.open().schema()
    #expect(schema.version == 1)
    #expect(schema.rules(for: "notes").type(of: "n") == .integer)
    #expect(schema.rules(for: "rates").write == .admin)
    let shown = try await two.ferry("schema", "show")
    #expect(shown.output.contains("  \"tables\" : {\n"))
    let line = try await two.ferry("--json", "schema", "show")
    #expect(try JSONLine.all(line.output).map { $0.number("version") } == [1])
    // The shown document can be applied again, one version later.
    let next = shown.output.replacingOccurrences(of: "\"version\" : 1", with: "\"version\" : 2")
      .replacingOccurrences(of: "integer", with: "text")
    try await two.ferry("schema", "apply", try file(next, of: two))
    #expect(try await one.open().schema().rules(for: "notes").type(of: "n") == .text)
  }

  @Test("a document that replaces another version is refused with the next step")
  func stale() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await device.ferry("schema", "apply", try file(Self.document, of: device))
    let replica = try await device.open()
    try await replica.applySchema(SpaceSchema(version: 2), dropsRules: true)
    await #expect(throws: ReplicaError.self) {
      try await replica.applySchema(SpaceSchema(version: 2, tables: ["t": TableRules()]))
    }
    let refused = try await device.ferry(
      "schema", "apply", try file("{\"version\":1,\"tables\":{\"t\":{}}}", of: device), exits: 1)
    #expect(refused.error.contains("apply it as version 3"))
    let broken = try await device.ferry(
      "schema", "apply", try file("{\"tabels\":{}}", of: device), exits: 2)
    #expect(broken.error.contains("'tabels' is none of"))
    #expect(try await replica.schema().version == 2)
  }

  @Test(
    "a document that would lose rules or definitions lists them, and is merged or replaces them")
  func losses() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await device.ferry("schema", "publish")
    try await device.ferry("schema", "apply", try file(Self.document, of: device), "--merge")
    let next = try file(#"{"tables":{"notes":{"columns":{"body":"ask"}}}}"#, of: device)
    let refused = try await device.ferry("schema", "apply", next, exits: 2)
    for part in [
      "would lose 4 rules", "the definition of notes", "the type of column n of notes",
      "the unique key (body) of notes", "write of rates", "--merge", "--replace",
    ] { #expect(refused.error.contains(part), "\(refused.error)") }
    #expect(try await device.open().schema().version == 2)
    // The library and plain requests are asked in the same way.
    let document = try SpaceSchema(json: #"{"tables":{"notes":{"columns":{"body":"ask"}}}}"#)
    do {
      try await device.open().applySchema(document)
      Issue.record("rules were dropped")
    } catch ReplicaError.refused(let problem) {
      #expect(problem.code == .schemaLosses && problem.lossCount == 4)
      #expect(problem.losses.first == "the definition of notes")
    }
    let address = "\(server.url)/v1/spaces/\(Device.space)/schema"
    let sent = try await Wire.send(.put, address, body: document.encoded())
    #expect(sent.status == 409 && sent.problem == "schema_losses")
    #expect((sent.json["losses"] as? [String])?.last == "write of rates")
    #expect(try await device.open().schema().version == 2)
    try await device.ferry("schema", "apply", next, "--merge", "--replace", exits: 2)
    #expect(
      try await device.ferry("schema", "apply", next, "--merge").output == "version 3 is in force\n"
    )
    let merged = try await device.open().schema().rules(for: "notes")
    #expect(merged.policy(of: "body") == .ask && merged.type(of: "n") == .integer)
    #expect(merged.definition != nil && merged.unique == [["body"]])
    try await device.ferry("schema", "apply", next, "--replace")
    #expect(try await device.open().schema().rules(for: "notes").definition == nil)
    #expect(try await device.open().schema().rules(for: "rates") == .standard)
  }

  @Test("the examples of the page about conflicts are applied one after the other")
  func page() async throws {
    let blocks = try DocumentedCode("Documentation/conflicts.md").blocks("console")
    let examples = blocks.filter { $0.contains("ferry schema apply") && $0.contains("--merge\n") }
    #expect(examples.count == 2)
    let server = try await Server.start()
    let device = try await Device.joined(
      server.url, schema: "CREATE TABLE tasks(id TEXT PRIMARY KEY, code TEXT, list TEXT)",
      tracking: ["tasks"])
    try await device.ferry("schema", "publish")
    for (number, example) in examples.enumerated() {
      let parts = example.split(separator: "\n$ ")
      let document = try #require(parts.first?.split(separator: "\n", maxSplits: 1).last)
      let lines = try #require(parts.last).split(separator: "\n")
      var command = lines[0].split(separator: " ").dropFirst().map(String.init)
      command[2] = try file(String(document), of: device)
      let expected = "version \(number + 2) is in force\n"
      let ended = try await device.ferry(command[0], command[1], command[2], command[3])
      #expect(ended.output == expected)
      #expect(lines[1] == expected.dropLast())
    }
    let rules = try await device.open().schema().rules(for: "tasks")
    #expect(rules.policy(of: "votes") == .counter && rules.deletes == .editWins)
    #expect(rules.clashes == [DeclaredClash(["list"], .parentReturns)])
    #expect(rules.definition != nil)
  }

  @Test("a schema that records do not fit is refused with their names, or applied if requested")
  func records() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await device.write("INSERT INTO notes VALUES ('a', 'one', 1), ('b', 'two', NULL)")
    try await device.exchange()
    let path = try file(
      #"{"tables":{"notes":{"columns":{"n":{"required":true},"body":{"type":"integer"}}}}}"#,
      of: device)
    let refused = try await device.ferry("schema", "apply", path, exits: 1)
    #expect(refused.error.contains("2 existing records do not fit the schema"))
    #expect(
      refused.error.contains("notes/a: column body has the type integer, but the value is text"))
    #expect(refused.error.contains("--keep-records"))
    let replica = try await device.open()
    do {
      let document = SpaceSchema(tables: ["notes": TableRules(unique: [["n"], ["body"]])])
      try await replica.applySchema(document)
      try await replica.applySchema(
        SpaceSchema(tables: ["notes": TableRules(columns: ["n": ColumnRules(isRequired: true)])]),
        dropsRules: true)
      Issue.record("a record without a value fits a column that has to hold one")
    } catch ReplicaError.refused(let problem) {
      #expect(problem.violations.map(\.record) == ["b"] && problem.violationCount == 1)
    }
    #expect(try await replica.schema().version == 1)
    try await device.ferry("schema", "apply", path, "--keep-records", "--replace")
    #expect(try await replica.schema().version == 2)
  }

  @Test("a reader can read the schema, and only an admin can change it")
  func roles() async throws {
    let server = try await Server.start()
    _ = try await server.token("reader")
    try await eventually("the server to ask for tokens", from: server) {
      try await Wire.send(.get, "\(server.url)/v1/spaces/\(Device.space)").status == 401
    }
    for (role, code) in [("reader", Int32(4)), ("writer", 4), ("admin", 0)] {
      let device = try await Device.joined(server.url, token: try await server.token(role))
      try await device.ferry("schema", "show")
      let done = try await device.ferry(
        "schema", "apply", try file(Self.document, of: device), exits: code)
      if code != 0 { #expect(done.error.contains("this needs admin")) }
    }
  }

  @Test(
    "the server names each operation that can never be applied, and stores none of its packet",
    arguments: StoreKind.allCases)
  func refusals(_ kind: StoreKind) async throws {
    let server = try await Server.start(kind)
    let device = try await Device.joined(server.url)
    try await device.write("INSERT INTO notes VALUES ('a', 'taken', 1)")
    try await device.exchange()
    try await device.ferry("schema", "apply", try file(Self.document, of: device))
    let ids = (1...4).map { "0199c82c-c001-7000-800a-00000000000\($0)" }
    let operations = [
      "\"notes\",\"record\":\"b\",\"data\":{\"body\":\"free\",\"n\":2}",
      "\"notes\",\"record\":\"c\",\"data\":{\"body\":\"taken\"}",
      "\"notes\",\"record\":\"d\",\"data\":{\"n\":\"two\"}",
      "\"ferry_schema\",\"record\":\"schema\",\"data\":{\"version\":9}",
    ]
    let list = zip(ids, operations).map { id, rest in
      "{\"id\":\"\(id)\",\"kind\":\"insert\",\"time\":\"0199c82cc0010000\",\"table\":\(rest)}"
    }
    let packet = "{\"device\":\"\(ids[0])\",\"operations\":[\(list.joined(separator: ","))]}"
    let answer = try await Wire.send(
      .post, "\(server.url)/v1/spaces/\(Device.space)/packets", body: Array(packet.utf8))
    #expect(answer.status == 422)
    #expect(answer.problem == "operation_refused")
    let refusals = answer.json["refusals"] as? [[String: Any]] ?? []
    #expect(refusals.map { $0["operation"] as? String } == Array(ids.dropFirst()))
    #expect(
      refusals.map { $0["code"] as? String } == [
        "unique_taken", "schema_violation", "reserved_table",
      ])
    #expect(refusals.map { $0["holder"] as? String } == ["a", nil, nil])
    #expect(try await server.head() == 2, "the insert and the schema")
  }

  @Test("an outdated client is notified, keeps its writes, and continues after its update")
  func minimumProtocol() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    try await device.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    let replica = try await device.open()
    try await replica.applySchema(SpaceSchema(minimumProtocol: ProtocolVersion.current + 1))
    let refused = try await device.ferry("sync", exits: 1)
    #expect(refused.error.contains("install a newer Ferry"))
    let bare = try await Wire.send(.get, "\(server.url)/v1/spaces/\(Device.space)/changes")
    #expect(bare.status == 426 && bare.problem == "upgrade_required")
    #expect(bare.headers["Upgrade"] == "Ferry")
    #expect(try await device.status().pending == 1)
    try await replica.applySchema(
      SpaceSchema(minimumProtocol: ProtocolVersion.current), dropsRules: true)
    #expect(try await device.exchange().pushed == 1)
  }
}
