import Ferry
import FerryTestSupport
import Testing

/// Two devices, one server, and a network that loses responses.
@Suite(.hangLimit)
struct ExchangeTests {
  @Test("two devices exchange inserts, updates and deletes", arguments: StoreKind.allCases)
  func exchange(_ kind: StoreKind) async throws {
    let pair = try await Pair.make(kind)
    let (one, two) = (pair.one, pair.two)
    try await one.write("INSERT INTO notes VALUES ('a', 'first', 1), ('b', 'second', 2)")
    let pushed = try await one.exchange()
    #expect((pushed.pushed, pushed.pulled, pushed.duplicates) == (2, 0, 0))
    let pulled = try await two.exchange("pull")
    #expect((pulled.pushed, pulled.pulled) == (0, 2))
    #expect(pulled.cursor != nil)
    try await expectEqual([one, two])

    try await two.write("UPDATE notes SET body = 'changed' WHERE id = 'a'")
    try await two.write("DELETE FROM notes WHERE id = 'b'")
    #expect(try await two.exchange("push").pushed == 2)
    #expect(try await one.exchange().pulled == 2)
    #expect(try await one.rows() == [["a", "changed", 1]])
    try await expectSettled([one, two], pair.server, operations: 4)
  }

  @Test("edits of different columns of one record on two devices are both kept")
  func columns() async throws {
    let pair = try await Pair.make()
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'body', 1)")
    try await expectSettled([pair.one, pair.two], pair.server, operations: 1)
    try await pair.one.write("UPDATE notes SET body = NULL WHERE id = 'a'")
    try await pair.two.write("UPDATE notes SET n = 7 WHERE id = 'a'")
    try await expectSettled([pair.one, pair.two], pair.server, operations: 3)
    #expect(try await pair.two.rows() == [["a", nil, 7]])
    #expect(try await pair.one.status().conflicts + pair.two.status().conflicts == 0)
  }

  @Test(
    "after a lost answer the packet is sent again and changes nothing",
    arguments: StoreKind.allCases
  )
  func lostAnswer(_ kind: StoreKind) async throws {
    let pair = try await Pair.make(kind)
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'x', 1), ('b', 'y', 2)")
    try await pair.one.write("INSERT INTO notes VALUES ('c', 'z', 3)")
    let trap = pair.proxy.trap(.answer, of: "POST ", .cut)
    let report = try await pair.one.exchange()
    try await trap.sprung()
    #expect((report.pushed, report.duplicates, report.buffered) == (0, 3, 0))
    #expect(try await pair.server.head() == 3)
    try await expectSettled([pair.one, pair.two], pair.server, operations: 3)
    #expect(try await pair.two.count() == 3)
  }

  @Test("an answer that breaks off is treated as lost")
  func brokenAnswer() async throws {
    let pair = try await Pair.make()
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    pair.proxy.trap(.answer, of: "POST ", after: 120, .cut)
    #expect(try await pair.one.exchange().duplicates == 1)
    try await expectSettled([pair.one, pair.two], pair.server, operations: 1)
  }

  @Test("if every answer to a push is lost, the next pull confirms the packets")
  func healedByPull() async throws {
    let pair = try await Pair.make()
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    pair.proxy.trap(.answer, of: "POST ", times: .max, .cut)
    let failed = try await pair.one.ferry("sync", exits: 3)
    #expect(failed.error.contains("could not be reached"))
    #expect(try await pair.one.status().pending == 1)
    #expect(try await pair.server.head() == 1)

    let report = try await pair.one.exchange("pull")
    #expect((report.pushed, report.duplicates) == (0, 0))
    #expect(try await pair.one.status().pending == 0)
    pair.proxy.removeTraps()
    try await expectSettled([pair.one, pair.two], pair.server, operations: 1)
  }

  @Test("after a lost answer the pull is repeated")
  func lostPull() async throws {
    let pair = try await Pair.make()
    try await pair.two.write("INSERT INTO notes VALUES ('a', 'x', 1)")
    try await pair.two.exchange()
    let trap = pair.proxy.trap(.answer, of: "/changes", after: 80, .cut)
    #expect(try await pair.one.exchange().pulled == 1)
    #expect(trap.hasSprung)
    try await expectEqual([pair.one, pair.two])
  }

  @Test("an edit during a push survives the push")
  func editInFlight() async throws {
    let pair = try await Pair.make()
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'sent', 1)")
    let trap = pair.proxy.trap(.answer, of: "POST ", .hold)
    let sync = try pair.one.start("sync", "--json")
    try await trap.sprung()
    try await pair.one.ferry("sql", "UPDATE notes SET body = 'edited' WHERE id = 'a'")
    try await pair.one.ferry("sql", "INSERT INTO notes VALUES ('b', 'new', 2)")
    let pending = try JSONLine.all(try await pair.one.ferry("pending", "--json").output)
    #expect(pending.map { $0.text("kind") } == ["insert", "update", "insert"])
    trap.release()
    #expect(try await sync.exitStatus() == .exited(0))
    try await expectSettled([pair.one, pair.two], pair.server, operations: 3)
    #expect(try await pair.two.rows() == [["a", "edited", 1], ["b", "new", 2]])
  }

  @Test("a remote change that arrives during a push does not undo the pushed edit")
  func remoteInFlight() async throws {
    let pair = try await Pair.make()
    try await pair.one.write("INSERT INTO notes VALUES ('a', 'old', 1)")
    try await expectSettled([pair.one, pair.two], pair.server, operations: 1)
    try await pair.two.write("UPDATE notes SET body = 'two', n = 2 WHERE id = 'a'")
    try await pair.two.exchange()
    let trap = pair.proxy.trap(.answer, of: "/changes", .hold)
    let sync = try pair.one.start("sync")
    try await trap.sprung()
    try await pair.one.write("UPDATE notes SET body = 'one' WHERE id = 'a'")
    trap.release()
    #expect(try await sync.exitStatus() == .exited(0))
    #expect(try await pair.one.rows() == [["a", "one", 2]])
    try await expectSettled([pair.one, pair.two], pair.server, operations: 3)
    #expect(try await pair.two.rows() == [["a", "one", 2]])
  }
}
