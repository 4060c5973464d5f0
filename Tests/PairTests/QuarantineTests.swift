import Ferry
import FerryNetworking
import FerrySyncClient
import FerryTestSupport
import Foundation
import Testing

/// Operations that the server can never apply leave the queue, and delay only operations that
/// depend on them.
@Suite(.hangLimit)
struct QuarantineTests {
  private static let lists = """
    CREATE TABLE lists(id TEXT PRIMARY KEY, name TEXT);
    CREATE TABLE items(id TEXT PRIMARY KEY, list TEXT REFERENCES lists(id), title TEXT)
    """

  private func apply(_ document: String, to server: Server) async throws {
    let schema = try SpaceSchema(json: document)
    try await Device.joined(server.url).open().applySchema(schema)
  }

  private func entries(_ device: Device) async throws -> [QuarantineEntry] {
    try await device.open().quarantine.entries()
  }

  @Test(
    "a taken unique key is quarantined with its holder's name, and all else is exchanged",
    arguments: StoreKind.allCases)
  func uniqueTaken(_ kind: StoreKind) async throws {
    let server = try await Server.start(kind)
    try await apply(#"{"tables":{"notes":{"unique":[["body"]]}}}"#, to: server)
    let one = try await Device.joined(server.url)
    let two = try await Device.joined(server.url)
    try await one.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try await one.exchange()
    try await two.write("INSERT INTO notes VALUES ('b', 'x', 2)")
    try await two.write(Sample.notes(30, "other"))
    let report = try await two.exchange(exits: 4)
    #expect(report.pushed == 30)
    #expect(report.quarantined == 1)
    for (command, status) in [("sync", 4), ("conflicts", 0)] as [(String, Int32)] {
      let named = try await two.ferry(command, exits: status).error
      #expect(
        named.contains("entry 1: table notes, record b: record a has the same body"), "\(named)")
    }
    try await one.exchange()
    try await expectEqual([one, two])
    #expect(try await one.count() == 31)
    let listed = try JSONLine.all(try await two.ferry("--json", "quarantine", "list").output)
    #expect(listed.map { $0.text("code") } == ["unique_taken"])
    #expect(listed.map { $0.text("record") } == ["b"])
    #expect(listed.map { $0.text("holder") } == ["a"])
    let shown = try await two.ferry("quarantine", "show", "1")
    #expect(shown.output.contains("the value belongs to notes a"))
    #expect(shown.output.contains("body=x"))
    // Again as it was: rejected again. With another value: accepted everywhere.
    try await two.ferry("quarantine", "retry", "1")
    #expect(try await two.count() == 32)
    try await two.exchange(exits: 4)
    #expect(try await two.count() == 31)
    let number = try #require(try await entries(two).first).number
    try await two.ferry("quarantine", "edit", "\(number)", "--set", "body=y")
    try await two.exchange()
    try await one.exchange()
    #expect(try await one.rows("SELECT id, body, n FROM notes WHERE id = 'b'") == [["b", "y", 2]])
    try await expectEqual([one, two])
    #expect(try await two.status().quarantined == 0)
  }

  @Test("after a refused update, the row has the server's value, and the refused one can be read")
  func refusedUpdate() async throws {
    let server = try await Server.start()
    try await apply(#"{"tables":{"notes":{"columns":{"n":{"type":"integer"}}}}}"#, to: server)
    let one = try await Device.joined(server.url)
    let two = try await Device.joined(server.url)
    try await one.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    for device in [one, two] { try await device.exchange() }
    try await two.write("UPDATE notes SET n = 'many', body = 'mine' WHERE id = 'a'")
    try await two.write("UPDATE notes SET n = 7 WHERE id = 'a'")
    try await one.write("UPDATE notes SET body = 'theirs' WHERE id = 'a'")
    try await one.exchange()
    // Merged they are one operation, whose value is an integer.
    try await two.exchange()
    #expect(try await two.rows() == [["a", "theirs", 7]])
    try await two.write("UPDATE notes SET n = 'many', body = 'more' WHERE id = 'a'")
    try await two.exchange(exits: 4)
    #expect(try await two.rows() == [["a", "theirs", 7]])
    let entry = try #require(try await entries(two).first)
    #expect(entry.code == .schemaViolation)
    #expect(entry.operations.first?.columns.contains(Column("n", "many")) == true)
    try await two.ferry("quarantine", "discard", "\(entry.number)")
    try await two.exchange()
    #expect(try await entries(two).isEmpty)
    let missing = try await two.ferry("quarantine", "retry", "\(entry.number)", exits: 1)
    #expect(missing.error.contains("no entry"))
  }

  @Test("an edit that could have no effect is rejected with the reason, and the entry stays")
  func impossibleEdits() async throws {
    let server = try await Server.start()
    try await apply(#"{"tables":{"notes":{"columns":{"n":{"type":"integer"}}}}}"#, to: server)
    let device = try await Device.joined(server.url)
    try await device.write("INSERT INTO notes VALUES ('a', 'x', 'many')")
    try await device.exchange(exits: 4)
    for (edit, reason) in [
      ("nosuch=1", "table notes has no column nosuch; it has id, body, n"),
      ("id=b", "column id of table notes belongs to the key, which stays; the others are body, n"),
    ] {
      let refused = try await device.ferry("quarantine", "edit", "1", "--set", edit, exits: 1)
      #expect(refused.error.contains(reason), "\(refused.error)")
    }
    #expect(try await entries(device).count == 1)
    #expect(try await device.status().pending == 0)
    let none = try await device.ferry("retry", "notes")
    #expect(none.output.contains("no change of notes has failed"), "\(none.output)")
    try await device.ferry("quarantine", "edit", "1", "--set", "n=7")
    try await device.exchange()
    #expect(try await device.rows() == [["a", "x", 7]])
  }

  @Test("the transaction of a refused operation and all that depends on it are quarantined")
  func dependants() async throws {
    let server = try await Server.start()
    try await apply(#"{"tables":{"lists":{"unique":[["name"]]}}}"#, to: server)
    let tables = ["lists", "items"]
    let one = try await Device.joined(server.url, schema: Self.lists, tracking: tables)
    let two = try await Device.joined(server.url, schema: Self.lists, tracking: tables)
    try await one.write("INSERT INTO lists VALUES ('mine', 'home')")
    try await one.exchange()
    try await two.write("INSERT INTO lists VALUES ('free', 'work')")
    try await two.write(
      "INSERT INTO lists VALUES ('taken', 'home'); INSERT INTO lists VALUES ('with', 'garden')")
    try await two.write("INSERT INTO items VALUES ('child', 'taken', 'upon it')")
    try await two.write("UPDATE items SET title = 'after it' WHERE id = 'child'")
    try await two.write("INSERT INTO items VALUES ('other', 'free', 'stays')")
    let report = try await two.exchange(exits: 4)
    #expect(report.pushed == 2)
    let entry = try #require(try await entries(two).first)
    #expect(entry.operations.map(\.key.record) == ["taken", "with", "child", "child"])
    #expect(entry.refused.count == 1)
    #expect(entry.holder == "mine")
    try await one.exchange()
    try await expectEqual([one, two], tables: tables)
    #expect(try await two.rows("SELECT id FROM items") == [["other"]])
    // Edited, it all comes back.
    try await two.ferry("quarantine", "edit", "\(entry.number)", "--set", "name=attic")
    try await two.exchange()
    try await one.exchange()
    try await expectEqual([one, two], tables: tables)
    #expect(
      try await one.rows("SELECT title FROM items WHERE list = 'taken'") == [["after it"]])
  }

  @Test("rows that cascade with their parents stay out of another transaction's quarantine")
  func cascades() async throws {
    let schema = """
      CREATE TABLE p(id TEXT PRIMARY KEY, email TEXT);
      CREATE TABLE k(id TEXT PRIMARY KEY, p TEXT REFERENCES p(id) ON DELETE CASCADE)
      """
    let server = try await Server.start()
    try await apply(#"{"tables":{"p":{"unique":[["email"]]}}}"#, to: server)
    var devices: [Device] = []
    for _ in 0..<3 {
      devices.append(try await .joined(server.url, schema: schema, tracking: ["p", "k"]))
    }
    let (one, two) = (devices[0], devices[1])
    try await one.write("INSERT INTO p VALUES ('H', 'K'), ('P1', 'a'), ('P2', 'b')")
    for device in devices { try await device.exchange() }
    try await two.write(
      "INSERT INTO p VALUES ('bad', 'K'); INSERT INTO k VALUES ('k1', 'P1')")
    try await two.write("INSERT INTO k VALUES ('k2', 'P2')")
    try await one.write("DELETE FROM p WHERE id <> 'H'")
    try await one.exchange()
    try await two.exchange(exits: 4)
    let entry = try #require(try await entries(two).first)
    #expect(entry.operations.allSatisfy { $0.key.record != "k2" })
    for device in [one, devices[2], one] { try await device.exchange() }
    try await two.ferry("quarantine", "discard", "\(entry.number)")
    try await two.exchange()
    try await expectEqual(devices, tables: ["p", "k"])
    let fresh = try await Device.joined(server.url, schema: schema, tracking: ["p", "k"])
    try await fresh.exchange()
    #expect(try await fresh.count("k") == 0)
  }

  @Test("a refused transaction of several packets is quarantined whole, and blocks nothing")
  func largeTransaction() async throws {
    let server = try await Server.start()
    try await apply(#"{"tables":{"notes":{"columns":{"n":{"type":"integer"}}}}}"#, to: server)
    let device = try await Device.joined(server.url)
    try await device.write("INSERT INTO notes VALUES ('before', 'x', 1)")
    try await device.write(
      Sample.notes(2_500, "large") + "; UPDATE notes SET n = 'poison' WHERE id = 'large-02400'")
    try await device.write("INSERT INTO notes VALUES ('after', 'x', 1)")
    let report = try await device.exchange(exits: 4)
    #expect(report.pushed == 2)
    #expect(report.quarantined == 2_501)
    #expect(try await device.rows("SELECT id FROM notes ORDER BY id") == [["after"], ["before"]])
    #expect(try await device.status().pending == 0)
    #expect(try await server.head() == 3)
    try await device.ferry("quarantine", "edit", "1", "--set", "n=7")
    try await device.exchange()
    #expect(try await device.count() == 2_502)
    #expect(try await device.value("SELECT n FROM notes WHERE id = 'large-02400'") == 7)
  }

  @Test("operations above a server's smaller limits are isolated, and the rest is sent")
  func tooLarge() async throws {
    let server = try await Server.start()
    let directory = try TemporaryDirectory()
    var surroundings = ReplicaSurroundings.system
    surroundings.limits.valueBytes = 4 << 20
    let replica = try await Replica.open(
      directory.file("replica.db").path, transport: CurlTransport(), in: surroundings)
    try await replica.write { try $0.execute(Device.notes) }
    try await replica.track("notes")
    try await replica.connect(to: server.url, space: Device.space)
    for number in 0..<20 {
      try await replica.write { database in
        let body = number == 13 ? "hex(zeroblob(600000))" : "'x'"
        try database.execute("INSERT INTO notes VALUES ('note-\(number)', \(body), 1)")
      }
    }
    let report = try await replica.sync()
    #expect(report.pushed == 19)
    #expect(report.quarantined == 1)
    let entry = try #require(try await replica.quarantine.entries().first)
    #expect(entry.operations.map(\.key.record) == ["note-13"])
    #expect(entry.detail.contains("bytes"))
    #expect(try await replica.status().pending == 0)
  }

  @Test("a writer's changes of a table for admins are refused, and the writer is notified")
  func forbidden() async throws {
    let server = try await Server.start()
    let admin = try await server.token("admin")
    let writer = try await server.token("writer")
    try await eventually("the tokens are asked for", from: server) {
      try await Wire.send(.get, "\(server.url)/v1/spaces/\(Device.space)").status == 401
    }
    let one = try await Device.joined(server.url, token: admin)
    try await one.open().applySchema(
      try SpaceSchema(json: #"{"tables":{"notes":{"write":"admin"}}}"#))
    let two = try await Device.joined(server.url, token: writer)
    try await two.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try await two.exchange(exits: 4)
    #expect(try await entries(two).map(\.code) == [.forbiddenTable])
    #expect(try await two.count() == 0)
    try await one.write("INSERT INTO notes VALUES ('b', 'x', 1)")
    try await one.exchange()
    #expect(try await one.status().quarantined == 0)
  }

  @Test("one refused operation of 10,000 delays none of the others")
  func poisoned() async throws {
    let server = try await Server.start()
    try await apply(#"{"tables":{"notes":{"columns":{"n":{"type":"integer"}}}}}"#, to: server)
    let device = try await Device.joined(server.url)
    try await device.open().writeInBulk { writer in
      for number in 0..<10_000 {
        let value: Value = number == 4_321 ? "poison" : .integer(Int64(number))
        _ = try writer.transaction {
          try $0.execute("INSERT INTO notes VALUES (?, 'x', ?)", [.text("note-\(number)"), value])
        }
      }
    }
    let report = try await device.exchange(exits: 4)
    #expect(report.pushed == 9_999)
    #expect(report.quarantined == 1)
    #expect(try await device.count() == 9_999)
    #expect(try await server.head() == 10_000)
    #expect(try await device.status().pending == 0)
  }
}
