import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Values of this device that another device overrules with a reason.
@Suite("Overruled writes", .hangLimit)
struct OverruledWritesTests {
  private let maker = PageMaker()
  private let winner = Stamp(
    time: HybridTimestamp(milliseconds: 1_900_000_000_000), device: PageMaker().device)

  /// Returns a device with one confirmed record.
  private func device() throws -> ReplicaFixture {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks VALUES ('t', 'mine', 1)")
    let packet = try replica.freeze()[0]
    _ = try replica.file.chain.receive(try replica.receipt(packet, first: 1))
    return replica
  }

  /// Returns a notice that this device lost some values of the record `t`.
  private func notice(
    _ kind: OperationKind, _ lost: [Column?], of device: DeviceID, number: UInt64 = 1,
    reason: String = "no room", by winner: Stamp? = nil
  ) -> Notice {
    let loser = Stamp(time: HybridTimestamp(milliseconds: 1), device: device)
    return Notice(
      sequence: 2, operation: OperationID(UniqueID(high: 0x7000, low: number)),
      key: RecordKey(table: "tasks", record: "t"),
      conflicts: lost.map {
        Conflict(
          column: $0?.name, lost: $0?.value ?? .null, loser: loser, winner: winner ?? self.winner)
      }, overruling: Notice.Overruling(kind: kind, reason: reason))
  }

  private static func device(_ number: UInt64) -> DeviceID {
    DeviceID(UniqueID(high: 0xC, low: number))
  }

  private func own(_ replica: ReplicaFixture) throws -> DeviceID {
    try replica.file.identity().device
  }

  @Test("overruled values are one entry of the quarantine, however often a page reports them")
  func update() throws {
    let replica = try device()
    let notice = notice(.update, [Column("done", 1)], of: try own(replica))
    let change = maker.change(
      2, "tasks", "t", [Column("done", 0)], inserts: false, at: 1_900_000_000_000)
    try replica.apply([change], notices: [notice, notice])
    try replica.apply([change], notices: [notice])
    let entry = try #require(try replica.file.quarantine.oldest(9).first)
    #expect(try replica.file.quarantine.count() == 1)
    #expect(entry.code == .overruled && entry.detail == "no room")
    #expect(entry.refused == entry.operations.map(\.id))
    let operation = try #require(entry.operations.first)
    #expect(operation.kind == .update && operation.key == notice.key)
    #expect(operation.columns == [Column("done", 1)])
    #expect(operation.id != notice.operation && operation.time > winner.time)
    #expect(try replica.file.conflicts.count() == 0)
    #expect(try replica.pending.isEmpty)
    #expect(try replica.rows("SELECT title, done FROM tasks") == [["mine", 0]])
    try replica.file.quarantineAnswers.retry(entry.number, changing: [Column("done", 2)])
    #expect(try replica.pending.map(\.columns) == [[Column("done", 2)]])
    #expect(try replica.pending.map(\.reason) == [nil])
    #expect(try replica.file.quarantine.isEmpty())
    try replica.apply([], head: 2, notices: [notice])
    #expect(try replica.file.quarantine.isEmpty(), "an answered entry does not return")
  }

  @Test("a record that is gone for all is an insert of the row, with the lost values")
  func delete() throws {
    let replica = try device()
    let lost = [nil, Column("done", 1)]
    try replica.apply(
      [maker.deletion(2, "tasks", "t", at: 1_900_000_000_000)],
      notices: [notice(.delete, lost, of: try own(replica))])
    #expect(try replica.rows("SELECT * FROM tasks").isEmpty)
    let entry = try #require(try replica.file.quarantine.oldest(9).first)
    #expect(entry.operations.map(\.kind) == [.insert])
    #expect(
      entry.operations.first?.columns.sorted { $0.name < $1.name }
        == [Column("done", 1), Column("title", "mine")])
    try replica.file.quarantineAnswers.retry(entry.number, changing: [Column("done", 0)])
    #expect(try replica.rows("SELECT id, title, done FROM tasks") == [["t", "mine", 0]])
    #expect(try replica.pending.map(\.kind) == [.insert])
  }

  @Test("an overruled delete is a delete, with the row before it")
  func returned() throws {
    let replica = try device()
    try replica.run("DELETE FROM tasks")
    let packet = try replica.freeze()[0]
    _ = try replica.file.chain.receive(try replica.receipt(packet, first: 2))
    try replica.apply(
      [maker.change(3, "tasks", "t", [Column("title", "theirs")], at: 1_900_000_000_000)],
      notices: [notice(.insert, [nil], of: try own(replica))])
    #expect(try replica.rows("SELECT title FROM tasks") == [["theirs"]])
    let entry = try #require(try replica.file.quarantine.oldest(9).first)
    #expect(entry.operations.map(\.kind) == [.delete])
    #expect(entry.operations.first?.columns.contains(Column("title", "mine")) == true)
    try replica.file.quarantineAnswers.retry(entry.number, changing: [])
    #expect(try replica.pending.map(\.kind) == [.delete])
  }

  @Test("values of other devices and of copies are no entry, those under a former name are")
  func formerNames() throws {
    let replica = try device()
    let former = try own(replica)
    try replica.file.connection.run(
      "INSERT INTO ferry_former_names(device, until) VALUES (?, ?)", Self.device(7),
      HybridTimestamp(milliseconds: 1).rawValue)
    try replica.file.connection.run(
      "INSERT INTO ferry_former_names(device, until) VALUES (?, 0)", Self.device(8))
    let lost = [Column("done", 1)]
    try replica.apply(
      [], head: 2,
      notices: [
        notice(.update, lost, of: Self.device(7)),
        notice(.update, [Column("title", "b")], of: former),
        notice(.update, lost, of: Self.device(8), number: 2),
        notice(.update, lost, of: Self.device(9), number: 3),
      ])
    let entries = try replica.file.quarantine.oldest(9)
    #expect(
      entries.map { $0.operations.flatMap(\.columns) }
        == [[Column("done", 1), Column("title", "b")]])
  }

  @Test("automatic uploads do not send an overruled write again")
  func automatic() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE tasks(id TEXT PRIMARY KEY, done INTEGER)")
    try replica.file.track(["tasks"], direction: .uploadOnly(automatic: true))
    try replica.run("INSERT INTO tasks VALUES ('t', 1)")
    let packet = try replica.freeze()[0]
    _ = try replica.file.chain.receive(try replica.receipt(packet, first: 1))
    try replica.apply(
      [], head: 2, notices: [notice(.update, [Column("done", 1)], of: try own(replica))])
    try replica.file.uploads.prepare()
    #expect(try replica.file.quarantine.count() == 1)
    // It had arrived: it is no failed upload, and what follows it is sent.
    #expect(try replica.rows("SELECT * FROM ferry_uploads WHERE failed") == [])
    try replica.run("UPDATE tasks SET done = 3")
    try replica.file.uploads.prepare()
    #expect(try replica.freeze().flatMap(\.operations).map(\.columns) == [[Column("done", 3)]])
    try replica.file.quarantineAnswers.retry(1, changing: [Column("done", 2)])
    #expect(try replica.pending.last?.columns == [Column("done", 2)])
  }

  @Test("hostile notices move no clock, and leave the quarantine readable")
  func hostile() throws {
    let replica = try device()
    let device = try own(replica)
    let columns = ["", "a\u{1}", "done"] + (0..<2_000).map { Name("c\($0)") }
    let late = Stamp(time: HybridTimestamp(rawValue: .max), device: winner.device)
    try replica.apply(
      [], head: 2,
      notices: [notice(.update, columns.map { Column($0, 1) }, of: device, by: late)])
    let entry = try #require(try replica.file.quarantine.oldest(9).first)
    #expect(entry.operations[0].columns.count == Limits.standard.columns)
    #expect(!entry.operations[0].columns.contains { ["", "a\u{1}"].contains($0.name) })
    try replica.run("UPDATE tasks SET done = 5")
    #expect(try #require(try replica.pending.last).time < .seenMax)
  }

  @Test("a device does not overrule a value of its own former identifier")
  func itself() throws {
    let replica = try device()
    let present = Stamp(time: winner.time, device: try own(replica))
    try replica.apply(
      [], head: 2,
      notices: [notice(.update, [Column("done", 1)], of: try own(replica), by: present)])
    #expect(try replica.file.quarantine.isEmpty())
  }

  @Test("a transaction's reason is recorded with each operation, and ends with the transaction")
  func recorded() throws {
    let replica = try device()
    try replica.run("INSERT INTO tasks VALUES ('gone', 'x', 0)")
    try replica.file.writeMarked { database, marks in
      try database.execute("UPDATE tasks SET done = 0 WHERE id = 't'")
      marks.reason = String(repeating: "é", count: 501)
      try database.execute("UPDATE tasks SET title = 'a' WHERE id = 't'")
      try database.execute("UPDATE tasks SET title = 'a' WHERE id = 't'")
      try database.execute("DELETE FROM tasks WHERE id = 'gone'")
      marks.reason = "other"
      try database.execute("INSERT INTO tasks VALUES ('gone', 'back', 0)")
      marks.reason = ""
      try database.execute("UPDATE tasks SET title = 'b' WHERE id = 'gone'")
    }
    try replica.run("UPDATE tasks SET done = 3 WHERE id = 't'")
    let long = String(repeating: "é", count: 500)
    let operations = try replica.pending.dropFirst(2)
    #expect(operations.map(\.reason) == [nil, long, long, "other", nil, nil])
    #expect(operations.map(\.kind) == [.update, .update, .delete, .insert, .update, .update])
    let sent = try replica.freeze().flatMap(\.operations)
    let decoded = try Packet(
      decoding: Packet(device: own(replica), dependency: nil, operations: sent).encoded(),
      limits: .standard)
    #expect(Set(decoded.operations.compactMap(\.reason)) == [long, "other"])
  }

  @Test("a rejected write with a reason has it again when it is retried")
  func retried() throws {
    let replica = try device()
    try replica.file.writeMarked { database, marks in
      marks.reason = "no room"
      try database.execute("UPDATE tasks SET done = 0 WHERE id = 't'")
    }
    let operation = try #require(try replica.freeze().last?.operations.first)
    let refusal = Refusal(
      operation: operation.id, code: .forbiddenTable, detail: "no", table: "tasks", record: "t")
    let number = try #require(try replica.file.packets.open().first).number
    #expect(try replica.file.refusedOperations.remove(from: number, [refusal]) == 1)
    let entry = try #require(try replica.file.quarantine.oldest(9).first)
    #expect(entry.operations.map(\.reason) == ["no room"])
    try replica.file.quarantineAnswers.retry(entry.number, changing: [Column("done", 5)])
    #expect(try replica.pending.last?.columns == [Column("done", 5)])
    #expect(try replica.pending.last?.reason == "no room")
    try replica.run("UPDATE tasks SET title = 'plain'")
    #expect(try replica.pending.last?.reason == nil)
  }

  @Test("seen overruled writes are forgotten with the cursor's old marks, and do not return")
  func forgotten() throws {
    let replica = try device()
    let notice = notice(.update, [Column("done", 1)], of: try own(replica))
    func seen() throws -> Int { try replica.rows("SELECT * FROM ferry_overruled").count }
    try replica.apply([], head: 3, serverTime: 1, notices: [notice])
    try replica.file.quarantineAnswers.retry(1, changing: [])
    try replica.apply([], head: 4, serverTime: PacketChain.archiveAgeMax)
    #expect(try seen() == 1)
    try replica.apply([], head: 5, serverTime: 2 * PacketChain.archiveAgeMax)
    #expect(try seen() == 0)
    try replica.apply([], head: 5, serverTime: 2 * PacketChain.archiveAgeMax, notices: [notice])
    #expect(try replica.file.quarantine.isEmpty())
  }

  @Test("a reason counts in the size of a transaction with the bytes of its JSON")
  func size() throws {
    var limits = Limits.standard
    limits.transactionBytes = 8_000
    let replica = try ReplicaFixture.withTasks(limits: limits)
    func insert(_ reason: String) throws {
      try replica.file.writeMarked { database, marks in
        marks.reason = reason
        for number in 0..<5 {
          try database.execute("INSERT INTO tasks(id) VALUES ('\(reason.count)\(number)')")
        }
      }
    }
    try insert(String(repeating: "a", count: 800))
    #expect(throws: (any Error).self) { try insert(String(repeating: "\u{1}", count: 801)) }
  }
}
