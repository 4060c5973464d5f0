import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Refused transactions beside rows that go with their parents.
@Suite("Quarantine and cascades", .hangLimit)
struct QuarantineCascadeTests {
  private let maker = PageMaker()

  /// Parents `P1` and `P2`, and a child of the second, which the server has.
  private func family() throws -> ReplicaFixture {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE p(id TEXT PRIMARY KEY, email TEXT);
      CREATE TABLE k(id TEXT PRIMARY KEY, p TEXT REFERENCES p(id) ON DELETE CASCADE)
      """)
    try replica.file.track(["p", "k"])
    try replica.apply([
      maker.change(1, "p", "P1", []), maker.change(2, "p", "P2", []),
      maker.change(3, "k", "old", [Column("p", "P2")]),
    ])
    return replica
  }

  /// Refuses a record of the first packet, as the server does.
  private func refuse(_ record: Name, _ replica: ReplicaFixture) throws -> [String] {
    let packet = try replica.freeze()[0]
    let operation = try #require(packet.operations.first { $0.key.record == record })
    let refusal = Refusal(
      operation: operation.id, code: .uniqueTaken, detail: "taken", table: operation.key.table,
      record: record)
    let number = try replica.file.packets.open()[0].number
    _ = try replica.file.refusedOperations.remove(from: number, [refusal])
    return try replica.file.quarantine.oldest(9).flatMap(\.operations)
      .map { "\($0.kind) \($0.key.record)" }
  }

  private func write(_ replica: ReplicaFixture, _ statements: String...) throws {
    try replica.file.write { database in
      for statement in statements { try database.execute(statement) }
    }
  }

  @Test("a row that cascaded in a pull stays out of a refused transaction's quarantine")
  func unrelatedCascade() throws {
    let replica = try family()
    try write(
      replica, "INSERT INTO p VALUES ('bad', 'K')", "INSERT INTO k VALUES ('k1', 'P1')")
    try write(replica, "INSERT INTO k VALUES ('k2', 'P2')")
    _ = try replica.freeze()
    try replica.apply([maker.deletion(4, "p", "P1"), maker.deletion(5, "p", "P2")])
    #expect(
      try refuse("bad", replica) == ["insert bad", "insert k1", "delete k1"])
    // The other rows that went with their parents reach the server, or never were there.
    let sent = try replica.freeze().flatMap(\.operations)
    for record in ["k2", "old"] as [Name] {
      #expect(sent.last { $0.key.record == record }?.kind == .delete, "\(record)")
    }
    #expect(try replica.rows("SELECT id FROM k").isEmpty)
  }

  @Test("a pull records a cascade of any size")
  func largeCascade() throws {
    let replica = try family()
    let count = 60
    try replica.apply(
      (0..<count).map { maker.change(SequenceNumber($0 + 10), "k", "c\($0)", [Column("p", "P2")]) })
    try replica.apply([maker.deletion(100, "p", "P2")])
    let pending = try replica.file.queue.oldest(1_000)
    #expect(pending.count == count + 1)
    #expect(Set(pending.map(\.group)).count == count + 1)
    #expect(pending.allSatisfy { $0.operation.base == 0 })
  }

  @Test(
    "a parent's delete is quarantined with a refused delete or move of its child",
    arguments: ["DELETE FROM k WHERE id = 'old'", "UPDATE k SET p = 'P1' WHERE id = 'old'"])
  func parentOfRefused(statement: String) throws {
    let replica = try family()
    try write(replica, "INSERT INTO p VALUES ('bad', 'K')", statement)
    try write(replica, "DELETE FROM p WHERE id = 'P2'")
    try write(replica, "INSERT INTO p VALUES ('free', 'F')")
    let kind = statement.hasPrefix("DELETE") ? "delete" : "update"
    #expect(try refuse("bad", replica) == ["insert bad", "\(kind) old", "delete P2"])
    #expect(try replica.freeze().flatMap(\.operations).map(\.key.record) == ["free"])
    #expect(Set(try replica.file.refreshes.next().map(\.record)) == ["bad", "old", "P2"])
  }

  @Test("a parent's delete stays in the queue if its former child was never sent")
  func parentOfUnsent() throws {
    let replica = try family()
    try write(
      replica, "INSERT INTO p VALUES ('bad', 'K')", "INSERT INTO k VALUES ('k1', 'P1')")
    try write(replica, "UPDATE k SET p = 'P2' WHERE id = 'k1'")
    try write(replica, "DELETE FROM p WHERE id = 'P1'")
    #expect(try refuse("bad", replica) == ["insert bad", "insert k1", "update k1"])
    #expect(try replica.freeze().flatMap(\.operations).map(\.key.record) == ["P1"])
  }

  @Test("if a list deletes a record's parent, the record and its children are deleted")
  func orphanOfList() throws {
    let replica = try family()
    try replica.run(
      "CREATE TABLE g(id TEXT PRIMARY KEY, k TEXT REFERENCES k(id) ON DELETE CASCADE)")
    try replica.file.track(["g"])
    let pulled = try replica.apply([
      maker.deletion(4, "p", "P1"), maker.change(5, "k", "k1", [Column("p", "P1")]),
      maker.change(6, "g", "g1", [Column("k", "k1")]),
      maker.change(7, "k", "fine", [Column("p", "P2")]),
    ])
    #expect(pulled.refused == 1, "the record that goes with the orphan is fetched with it")
    let orphan = try #require(try replica.pending.first)
    #expect(orphan.kind == .delete && orphan.key.record == "k1" && orphan.base == 0)
    #expect(try replica.pending.count == 1)
    #expect(try replica.rows("SELECT id FROM k ORDER BY id") == [["fine"], ["old"]])
    #expect(try replica.file.refreshes.next().map(\.record) == ["k1"])
  }

  @Test(
    "a record without its parent is deleted if the server reports the parent as deleted",
    arguments: [true, false])
  func orphanFetched(isKnown: Bool) throws {
    let replica = try family()
    let parent = RecordKey(table: "p", record: "gone")
    #expect(try replica.apply([maker.change(5, "k", "k1", [Column("p", "gone")])]).refused == 1)
    #expect(try replica.file.refreshes.next() == [parent])
    let page = maker.page(
      [maker.deletion(isKnown ? 4 : 0, "p", "gone", at: isKnown ? 1_700_000_000_000 : 0)],
      more: true)
    try replica.file.incoming.stage(page.body, ofRecords: [parent])
    let pulled = try replica.apply([], head: 5)
    #expect(pulled.refused == (isKnown ? 0 : 1))
    #expect(try replica.file.kept.refusedCount() == (isKnown ? 0 : 1))
    #expect(try replica.pending.map(\.key.record) == (isKnown ? ["k1"] : []))
    // It is requested once: a record unknown to the server may still come.
    #expect(try replica.file.refreshes.next().isEmpty)
    try replica.apply([maker.change(6, "p", "gone", [])])
    #expect(try replica.file.kept.refusedCount() == 0)
    #expect(try replica.rows("SELECT id FROM k WHERE p = 'gone'") == (isKnown ? [] : [["k1"]]))
  }

  @Test("a refusal that names an operation of an earlier packet reopens that packet as well")
  func earlierPacket() throws {
    let replica = try family()
    try write(replica, "INSERT INTO p VALUES ('bad', 'K')", "INSERT INTO p VALUES ('good', 'L')")
    let first = try #require(try replica.freeze().first)
    try write(replica, "INSERT INTO p VALUES ('later', 'M')")
    _ = try replica.freeze()
    let packets = try replica.file.packets.open()
    #expect(packets.count == 2)
    let bad = try #require(first.operations.first { $0.key.record == "bad" })
    let refusal = Refusal(
      operation: bad.id, code: .uniqueTaken, detail: "taken", table: "p", record: "bad")
    #expect(try replica.file.refusedOperations.remove(from: packets[1].number, [refusal]) == 2)
    // The remaining operations can be sent: no packet lacks one.
    let sent = try replica.freeze().flatMap(\.operations).map(\.key.record)
    #expect(sent == ["later"])
  }
}
