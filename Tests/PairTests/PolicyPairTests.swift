import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Conflict policies between real devices, from a write in SQL to the final rows of both.
@Suite(.hangLimit)
struct PolicyPairTests {
  private static let schema = """
    {"tables":{"notes":{"columns":{"n":"counter","body":"text-merge"}},
      "marks":{"columns":{"high":"max","low":"min","tags":"set-union","state":"ask",
        "fixed":"server-wins","mine":"client-wins"}},
      "kept":{"deletes":"edit-wins"},"asked":{"deletes":"ask"}}}
    """
  private static let tables = ["notes", "marks", "kept", "asked"]
  private static let sql = """
    CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT, n INTEGER);
    CREATE TABLE marks(id TEXT PRIMARY KEY, high, low, tags TEXT, state TEXT, fixed TEXT, mine TEXT);
    CREATE TABLE kept(id TEXT PRIMARY KEY, a TEXT, b TEXT);
    CREATE TABLE asked(id TEXT PRIMARY KEY, a TEXT, b TEXT);
    """

  /// Creates two devices with the schema and the rows of `rows`.
  private func devices(
    _ rows: String, _ kind: StoreKind = .embedded
  ) async throws -> (Server, Device, Device) {
    let server = try await Server.start(kind)
    let one = try await Device.joined(server.url, schema: Self.sql, tracking: Self.tables)
    let two = try await Device.joined(server.url, schema: Self.sql, tracking: Self.tables)
    try await one.open().applySchema(try SpaceSchema(json: Self.schema))
    for device in [one, two] { try await device.exchange() }
    try await one.write(rows)
    for device in [one, two] { try await device.exchange() }
    return (server, one, two)
  }

  private func settle(_ one: Device, _ two: Device, exits code: Int32 = 0) async throws {
    try await one.exchange()
    try await two.exchange(exits: code)
    try await one.exchange()
    try await expectEqual([one, two], tables: Self.tables)
  }

  @Test("own writes between two syncs result in the server's value, for max, min and set-union")
  func ownWrites() async throws {
    let (server, one, two) = try await devices("")
    defer { _ = server.port }
    try await one.write("INSERT INTO marks(id, high, low, tags) VALUES ('m', 5, 5, '[\"a\"]')")
    try await one.write("UPDATE marks SET high = 3, low = 9, tags = '[\"b\"]'")
    try await settle(one, two)
    #expect(
      try await one.rows("SELECT high, low, tags FROM marks") == [[5, 5, "[\"a\",\"b\"]"]])
  }

  @Test("concurrent increments add up, and an author sees the sum", arguments: StoreKind.allCases)
  func counter(_ kind: StoreKind) async throws {
    let (server, one, two) = try await devices("INSERT INTO notes VALUES ('a', 'x', 10)", kind)
    defer { _ = server.port }
    for _ in 0..<3 { try await one.write("UPDATE notes SET n = n + 1") }
    try await two.write("UPDATE notes SET n = n - 4")
    try await two.write("UPDATE notes SET n = n + 100, body = 'y'")
    // Counters are listed as their values.
    for command in ["pending", "history"] {
      let lines = try JSONLine.all(try await one.ferry(command, "--json").output)
      let values = lines.compactMap { $0.object("data").number("n") }
      #expect(Set(values).isSuperset(of: [11, 12, 13]), "\(command): \(values)")
    }
    try await one.exchange()
    // Pulled increments add to pending ones.
    try await two.exchange("pull")
    #expect(try await two.value("SELECT n FROM notes") == 109)
    try await settle(one, two)
    #expect(try await one.rows() == [["a", "y", 109]])
    // And again, with no concurrent write.
    try await two.write("UPDATE notes SET n = n * 2")
    try await settle(two, one)
    #expect(try await one.value("SELECT n FROM notes") == 218)
  }

  @Test("texts edited in different lines are merged; edits of one line ask the user")
  func text() async throws {
    let (server, one, two) = try await devices(
      "INSERT INTO notes VALUES ('a', 'one\ntwo\nthree', 0)")
    defer { _ = server.port }
    try await one.write("UPDATE notes SET body = 'ONE\ntwo\nthree'")
    try await two.write("UPDATE notes SET body = 'one\ntwo\nTHREE\nfour'")
    try await settle(one, two)
    #expect(try await one.value("SELECT body FROM notes") == "ONE\ntwo\nTHREE\nfour")
    try await one.write("UPDATE notes SET body = replace(body, 'two', '2')")
    try await two.write("UPDATE notes SET body = replace(body, 'two', 'zwei')")
    try await settle(one, two, exits: 4)
    #expect(try await two.value("SELECT body FROM notes") == "ONE\n2\nTHREE\nfour")
    let question = try #require(try await two.open().conflicts(openOnly: true).first)
    #expect(question.conflict.lost == "ONE\nzwei\nTHREE\nfour")
  }

  @Test("each table keeps the largest, smallest, united, server's or client's value by its policy")
  func values() async throws {
    let (server, one, two) = try await devices(
      "INSERT INTO marks VALUES ('a', 5, 5, '[1]', 'new', 'first', 'first')")
    defer { _ = server.port }
    try await two.write(
      "UPDATE marks SET high = 9, low = 7, tags = '[1,2]', fixed = 'two', mine = 'two'")
    try await one.write(
      "UPDATE marks SET high = 7, low = 2, tags = '[3]', fixed = 'one', mine = 'one'")
    try await settle(one, two)
    #expect(
      try await two.rows("SELECT high, low, tags, fixed, mine FROM marks")
        == [[9, 2, "[1,2,3]", "one", "two"]])
    // Each losing value is kept, with the author.
    let listed = try JSONLine.all(try await two.ferry("--json", "conflicts").output)
    let fixed = try #require(listed.first { $0.text("column") == "fixed" })
    #expect(fixed.text("lost") == "two")
    #expect(fixed.text("state") == "decided")
    #expect(fixed.text("loser") == "\(try await two.status().device)")
  }

  @Test("a device is notified of a loss that another device decided after its sync")
  func laterLoss() async throws {
    let (server, one, two) = try await devices("INSERT INTO kept VALUES ('a', 'first', 'x')")
    defer { _ = server.port }
    try await one.write("UPDATE kept SET a = 'one'")
    try await two.write("UPDATE kept SET a = 'two'")
    try await one.exchange()
    #expect(try await one.status().conflicts == 0)
    try await two.exchange()
    try await one.exchange()
    let told = try #require(try await one.open().conflicts().first)
    #expect(told.conflict.lost == "one")
    #expect(told.conflict.loser.device == (try await one.status().device))
    #expect(told.conflict.winner.device == (try await two.status().device))
    #expect(try await one.value("SELECT a FROM kept") == "two")
  }

  @Test("a question stays on the losing device until an answer ends it on all devices")
  func ask() async throws {
    let (server, one, two) = try await devices(
      "INSERT INTO marks(id, state) VALUES ('a', 'new'), ('b', 'new')")
    let three = try await Device.joined(server.url, schema: Self.sql, tracking: Self.tables)
    try await three.exchange()
    let replica = try await three.open()
    var updates = replica.conflictUpdates().makeAsyncIterator()
    try await one.write("UPDATE marks SET state = 'one'")
    try await two.write("UPDATE marks SET state = 'two'")
    try await replica.write { try $0.execute("UPDATE marks SET state = 'three'") }
    try await one.exchange()
    try await two.exchange(exits: 4)
    try await replica.sync()
    #expect(try await updates.next()?.conflict.lost == "three")
    #expect(try await three.value("SELECT state FROM marks WHERE id = 'a'") == "one")
    #expect(try await three.status().questions == 2)
    #expect(try await two.status().questions == 2)
    let open = try JSONLine.all(try await two.ferry("--json", "conflicts", "--open").output)
    let first = try #require(open.first { $0.text("record") == "a" }?.number("id"))
    let second = try #require(open.first { $0.text("record") == "b" }?.number("id"))
    try await two.ferry("resolve", "\(first)", "--keep", "local")
    // A choice that leaves the value as it is also ends the question for the others.
    try await two.ferry("resolve", "\(second)", "--keep", "remote")
    try await two.exchange()
    try await three.exchange()
    try await one.exchange()
    #expect(try await three.status().questions == 0)
    #expect(
      try await one.rows("SELECT id, state FROM marks ORDER BY id") == [
        ["a", "two"], ["b", "one"],
      ])
    try await expectEqual([one, two, three], tables: Self.tables)
    let wrong = try await two.ferry("resolve", "999", "--keep", "local", exits: 1)
    #expect(wrong.error.contains("no conflict 999"))
    try await two.ferry("resolve", "\(first)", exits: 2)
  }

  @Test("edit-wins: an edit wins over a concurrent delete, in either order of arrival")
  func editWins() async throws {
    let (server, one, two) = try await devices(
      "INSERT INTO kept VALUES ('a', '1', '2'), ('b', '1', '2'), ('c', '1', '2')")
    defer { _ = server.port }
    try await one.write("DELETE FROM kept WHERE id = 'a'; UPDATE kept SET a = 'x' WHERE id = 'b'")
    try await one.write("DELETE FROM kept WHERE id = 'c'")
    try await two.write("UPDATE kept SET a = 'y' WHERE id = 'a'; DELETE FROM kept WHERE id = 'b'")
    try await settle(one, two)
    let rows = try await one.rows("SELECT * FROM kept ORDER BY id")
    #expect(rows == [["a", "y", "2"], ["b", "x", "2"]])
  }

  @Test("edit-wins: a row that stayed is gone once the server has forgotten its delete")
  func forgottenDelete() async throws {
    let (server, one, two) = try await devices("INSERT INTO kept VALUES ('a', '1', '2')")
    try await two.write("UPDATE kept SET a = 'y'")
    try await one.write("DELETE FROM kept")
    try await one.exchange()
    _ = try await two.open().pull()
    #expect(try await two.rows("SELECT a FROM kept") == [["y"]])
    let pruned = try await server.ferryd("space", "prune", Device.space, "--older-than", "0s")
    #expect(pruned.status == .exited(0), "\(pruned.error)")
    _ = try await two.open().sync()
    #expect(try await two.rows("SELECT a FROM kept").isEmpty)
    // The user can read the values, and choose them again.
    let lost = try await two.open().conflicts().map(\.conflict.lost)
    #expect(Set(lost) == ["y", "2", .null])
    try await expectEqual([one, two], tables: Self.tables)
  }

  @Test("a record whose deferred value its device overwrites is fetched by the same sync")
  func deferredOverwritten() async throws {
    let server = try await Server.start()
    let table = "CREATE TABLE held(id TEXT PRIMARY KEY, n INTEGER, m INTEGER, high INTEGER"
    let one = try await Device.joined(server.url, schema: table + ")", tracking: ["held"])
    let two = try await Device.joined(
      server.url, schema: table + ", CHECK (n < 5))", tracking: ["held"])
    try await one.open().applySchema(
      try SpaceSchema(json: #"{"tables":{"held":{"columns":{"high":"max"}}}}"#))
    try await one.write("INSERT INTO held VALUES ('a', 1, 1, 1), ('b', 1, 1, 1)")
    for device in [one, two] { try await device.exchange() }
    try await one.write("UPDATE held SET n = 9, m = 7 WHERE id = 'a'")
    try await one.write("UPDATE held SET high = 5 WHERE id = 'b'")
    try await one.exchange()
    // The server overrules this operation, so only a pull confirms the packet.
    try await two.write("UPDATE held SET high = 2 WHERE id = 'b'")
    _ = try await two.open().pull()
    try await two.write("UPDATE held SET m = 3 WHERE id = 'a'")
    _ = try await two.open().sync()
    #expect(try await two.status().deferred == 1)
    #expect(try await two.rows("SELECT tbl, record FROM ferry_refresh").isEmpty)
  }

  @Test("ask: the loser of a delete against an edit is asked, and can choose its own operation")
  func askAboutDeletes() async throws {
    let (server, one, two) = try await devices(
      "INSERT INTO asked VALUES ('a', '1', '2'), ('b', '1', '2')")
    defer { _ = server.port }
    try await one.write("DELETE FROM asked WHERE id = 'a'; UPDATE asked SET a = 'x' WHERE id = 'b'")
    try await two.write("UPDATE asked SET a = 'y' WHERE id = 'a'; DELETE FROM asked WHERE id = 'b'")
    try await settle(one, two, exits: 4)
    #expect(try await two.rows("SELECT * FROM asked") == [["b", "x", "2"]])
    for question in try await two.open().conflicts(openOnly: true) {
      try await two.ferry("resolve", "\(question.number)", "--keep", "local")
    }
    #expect(try await two.status().questions == 0)
    try await settle(one, two)
    #expect(try await one.rows("SELECT id, a FROM asked") == [["a", "y"]])
  }

  @Test("undo reverts an operation before and after it was sent, except for replaced values")
  func undo() async throws {
    let (server, one, two) = try await devices(
      "INSERT INTO notes VALUES ('a', 'x', 1); INSERT INTO kept VALUES ('k', '1', '2')")
    defer { _ = server.port }
    try await one.write("UPDATE notes SET body = 'typo', n = n + 5")
    try await one.write("UPDATE kept SET a = 'p', b = 'q'")
    try await one.write("DELETE FROM kept")
    try await settle(one, two)
    let listed = try JSONLine.all(try await one.ferry("--json", "history").output)
    #expect(listed.prefix(3).map { $0.text("kind") } == ["delete", "update", "update"])
    #expect(listed[2].object("before").text("body") == "x")
    let operations = listed.compactMap { $0.text("operation") }
    try await one.ferry("undo", operations[0])
    #expect(try await one.rows("SELECT * FROM kept") == [["k", "p", "q"]])
    try await two.write("UPDATE notes SET n = n + 1")
    try await two.exchange()
    try await one.exchange()
    try await one.ferry("undo", operations[2])
    try await settle(one, two)
    #expect(try await two.rows() == [["a", "x", 2]])
    // A value changed since by another device stays.
    try await two.write("UPDATE kept SET a = 'theirs'")
    try await settle(two, one)
    try await one.ferry("undo", operations[1])
    #expect(try await one.rows("SELECT * FROM kept") == [["k", "theirs", "2"]])
    let again = try await one.ferry("undo", operations[1], exits: 1)
    #expect(again.error.contains("replaced the operation's values"))
    let foreign = try await two.ferry("undo", operations[0], exits: 1)
    #expect(foreign.error.contains("this device has no operation"))
  }

  @Test("a device that has not received the schema yet loses no operation to it")
  func unawareDevice() async throws {
    let server = try await Server.start()
    let one = try await Device.joined(server.url, schema: Self.sql, tracking: Self.tables)
    let two = try await Device.joined(server.url, schema: Self.sql, tracking: Self.tables)
    try await one.write("INSERT INTO notes VALUES ('a', 'x', 10)")
    for device in [one, two] { try await device.exchange() }
    // Written as a plain value, before the table had a counter.
    try await two.write("UPDATE notes SET n = 50")
    try await one.open().applySchema(try SpaceSchema(json: Self.schema))
    try await one.exchange()
    try await one.write("UPDATE notes SET n = n + 1")
    try await settle(one, two)
    #expect(try await two.status().pending == 0)
    try await two.write("UPDATE notes SET n = n + 1")
    try await one.write("UPDATE notes SET n = n + 1")
    let before = try await one.value("SELECT n FROM notes")
    try await settle(one, two)
    guard case .integer(let was)? = before else { return }
    #expect(try await one.value("SELECT n FROM notes") == .integer(was + 1))
  }
}
