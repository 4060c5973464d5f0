import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Growing rows, up to the limit of a record.
@Suite("Large rows", .hangLimit)
struct LargeRowTests {
  /// A hundredth of the usual limits: so large values take less time to write.
  private static let limits: Limits = {
    var limits = Limits.standard
    (limits.valueBytes, limits.operationBytes, limits.recordStateBytes) = (10_500, 42_000, 86_000)
    (limits.packetBytesTarget, limits.transactionBytes) = (10_500, 125_000)
    limits.operationsPerTransaction = 400
    return limits
  }()

  private let limits = Self.limits
  private let maker = PageMaker()

  /// Returns a table of ten texts, and one with a reference to it.
  private func replica() throws -> ReplicaFixture {
    let replica = try ReplicaFixture(limits: limits)
    let columns = (0..<10).map { ", c\($0) TEXT" }.joined()
    try replica.run(
      """
      CREATE TABLE lists(id TEXT PRIMARY KEY);
      CREATE TABLE t(id TEXT PRIMARY KEY\(columns),
        list TEXT REFERENCES lists(id) ON DELETE CASCADE)
      """)
    try replica.file.track(["lists", "t"])
    return replica
  }

  /// Fills the row's columns, one by one.
  private func grow(_ replica: ReplicaFixture, _ columns: Range<Int>, of record: String = "a")
    throws
  {
    for column in columns {
      try replica.run(
        "UPDATE t SET c\(column) = printf('%.*c', 10000, 'x') WHERE id = ?", [.text(record)])
    }
  }

  private func sendAll(_ replica: ReplicaFixture) throws -> [Packet] {
    var sent: [Packet] = []
    var head = try replica.file.syncState().applied
    while let packet = try replica.freeze(limit: 1).first {
      #expect(packet.encoded().count <= limits.messageBytes)
      for operation in packet.operations {
        #expect(
          operation.columns.reduce(0) { $0 + $1.value.byteCount } <= limits.operationBytes)
      }
      _ = try replica.file.chain.receive(replica.receipt(packet, first: head + 1))
      head += SequenceNumber(packet.operations.count)
      sent.append(packet)
    }
    return sent
  }

  @Test("a row that grew column by column can be deleted, and restored by undo")
  func delete() throws {
    let replica = try replica()
    try replica.run("INSERT INTO t(id) VALUES ('a')")
    try grow(replica, 0..<7)
    try replica.run("DELETE FROM t")
    let deletion = try #require(try replica.pending.last)
    #expect(deletion.kind == .delete && deletion.columns.count == 11)
    _ = try replica.file.undoSteps.undo(deletion.id)
    #expect(try replica.rows("SELECT length(c6), c7 FROM t") == [[10_000, nil]])
    #expect(try sendAll(replica).last?.operations.last?.kind == .update)
  }

  @Test("a statement that makes a row too large fails, and the row can become smaller")
  func limit() throws {
    let replica = try replica()
    try replica.run("INSERT INTO t(id) VALUES ('a')")
    try grow(replica, 0..<8)
    for sql in [
      "UPDATE t SET c9 = printf('%.*c', 9000, 'x')",
      "INSERT INTO t SELECT 'b', c0, c1, c2, c3, c4, c5, c6, c7, c0, c1, NULL FROM t",
    ] {
      let error = #expect(throws: DatabaseError.self) { try replica.run(sql) }
      #expect(error?.description.contains("can be synced") == true)
    }
    let long = #expect(throws: DatabaseError.self) {
      try replica.run("UPDATE t SET c9 = printf('%.*c', 10501, 'x')")
    }
    #expect(long?.description.contains("column c9 has 10,501 bytes; ") == true, "\(long as Any)")
    try replica.file.write { try $0.renameColumn("c9", of: "t", to: "my own") }
    for (sql, fault) in [
      ("UPDATE t SET \"my own\" = printf('%.*c', 10501, 'x')", "has 10,501 bytes; "),
      ("UPDATE t SET \"my own\" = CAST(x'ff' AS TEXT)", "contains text that is not UTF-8"),
    ] {
      let renamed = #expect(throws: DatabaseError.self) { try replica.run(sql) }
      #expect(renamed?.description.contains("table t: column my own \(fault)") == true)
    }
    try replica.file.write { try $0.renameColumn("my own", of: "t", to: "c9") }
    #expect(throws: ReplicaError.self) {
      try replica.file.write {
        try $0.batch(
          "t", where: "id = 'a'", set: ["c9": .text(String(repeating: "x", count: 9_000))])
      }
    }
    #expect(try replica.rows("SELECT id, c9 FROM t") == [["a", nil]])
    // The row is rejected because it grows, not because it is large.
    try replica.apply([
      maker.change(
        1, "t", "b",
        (0..<9).map { Column("c\($0)", .text(String(repeating: "y", count: 10_000))) })
    ])
    try replica.run("UPDATE t SET c0 = 'short' WHERE id = 'b'")
    #expect(throws: DatabaseError.self) {
      try replica.run("UPDATE t SET c0 = printf('%.*c', 9999, 'x') WHERE id = 'b'")
    }
    try replica.run("UPDATE t SET id = 'c' WHERE id = 'b'")
    try replica.run("DELETE FROM t")
  }

  @Test("a row larger than one operation is recorded as an insert and updates")
  func wholeRow() throws {
    let replica = try replica()
    let text = "printf('%.*c', 10000, 'x')"
    let texts = (0..<7).map { _ in text }.joined(separator: ", ")
    try replica.run("INSERT INTO t SELECT 'a', \(texts), 1, 2, 3, NULL")
    try replica.run(
      "UPDATE t SET \((0..<7).map { "c\($0) = c\($0) || 'y'" }.joined(separator: ", "))")
    #expect(try replica.pending.map(\.kind) == [.insert, .update, .update, .update])
    var state = RecordState()
    let stamp = { (operation: SyncOperation) in
      Stamp(time: operation.time, device: DeviceID(UniqueID(high: 1, low: 1)))
    }
    var sequence: SequenceNumber = 0
    for packet in try sendAll(replica) {
      for operation in packet.operations {
        sequence += 1
        _ = state.merge(operation, stamp: stamp(operation), sequence: sequence, rules: .standard)
      }
    }
    #expect(state.columns.count == 11 && state.encoded().count <= limits.recordStateBytes)
    let row = try replica.rows("SELECT c0, c6, c9 FROM t")[0]
    #expect(
      ["c0", "c6", "c9"].map { name in
        state.columns.first { $0.name == name }?.value ?? .null
      } == row)
  }

  @Test("untracked rows, and large rows that a server lost, are sent")
  func existing() throws {
    let replica = try ReplicaFixture(limits: limits)
    try replica.run("CREATE TABLE t(id TEXT PRIMARY KEY, a, b, c, d, e, f, g)")
    let text = "printf('%.*c', 10000, 'x')"
    try replica.run(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4)
      INSERT INTO t SELECT 'r' || i, \(text), \(text), \(text), \(text), \(text), \(text), i FROM n
      """)
    try replica.file.track(["t"])
    let pending = try replica.file.queue.oldest(100)
    #expect(Set(pending.map(\.group)).count == 2)
    #expect(pending.map(\.operation.base).allSatisfy { $0 == 0 })
    #expect(try sendAll(replica).count >= 4)
    // The server was created from scratch, and no device keeps the operations any more.
    try replica.file.connection.execute(
      "DELETE FROM ferry_operations; DELETE FROM ferry_packets")
    try ReplacingPull(replica.file).begin(Problem(.epochChanged, "another epoch"))
    let page = maker.page([maker.change(1, "other", "x", [])])
    _ = try replica.file.apply(last: page.body, page.head)
    let rescued = try replica.pending
    #expect(rescued.map(\.key.record) == ["r1", "r1", "r2", "r2", "r3", "r3", "r4", "r4"])
    #expect(rescued.map(\.kind) == (0..<4).flatMap { _ in [OperationKind.insert, .update] })
    #expect(rescued.allSatisfy { $0.time == .rescue })
  }

  @Test("a parent's delete cascades to any number of large rows")
  func cascade() throws {
    let replica = try replica()
    try replica.apply([maker.change(1, "lists", "l", [])])
    try replica.run(
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
      INSERT INTO t(id, list) SELECT 'r' || i, 'l' FROM n
      """)
    try replica.run(
      """
      WITH RECURSIVE n(i) AS (SELECT 301 UNION ALL SELECT i + 1 FROM n WHERE i < 450)
      INSERT INTO t(id, list) SELECT 'r' || i, 'l' FROM n
      """)
    for record in ["r1", "r2", "r3"] { try grow(replica, 0..<6, of: record) }
    let before = try replica.pending.count
    let result = try replica.apply([maker.deletion(2, "lists", "l")])
    #expect(result == AppliedPull(applied: 1, refused: 0))
    #expect(try replica.rows("SELECT count(*) FROM t") == [[0]])
    let added = try replica.file.queue.oldest(200_000).dropFirst(before)
    #expect(added.count == 450 && added.allSatisfy { $0.operation.kind == .delete })
    // A refused operation takes no other with it.
    #expect(Set(added.map(\.group)).count == 450)
  }

  @Test("a transaction can contain the largest allowed number of records, if they are short")
  func transaction() throws {
    let replica = try replica()
    func insert(_ prefix: String, _ count: Int) -> String {
      """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
      INSERT INTO lists(id) SELECT '\(prefix)' || i FROM n
      """
    }
    try replica.run(insert("a", limits.operationsPerTransaction))
    let error = #expect(throws: DatabaseError.self) {
      try replica.run(insert("b", limits.operationsPerTransaction + 1))
    }
    #expect(error?.isTooManyWrites == true)
    #expect(error?.description.contains("400 records") == true)
    #expect(error?.description.contains("ferry batch") == false, "a batch inserts nothing")
    // The usual limits let the number be reached before the bytes.
    let usual = Limits.standard
    #expect(usual.operationsPerTransaction * (256 + 50) < usual.transactionBytes)
  }

  @Test(
    "updates and deletes of too many records or bytes name the batch in their error",
    arguments: ["UPDATE t SET c0 = 'new'", "UPDATE t SET c1 = c0", "DELETE FROM t"])
  func batchInstead(_ statement: String) throws {
    let replica = try replica()
    let count = statement.contains("c1") ? 20 : limits.operationsPerTransaction + 1
    for half in 0...1 {
      try replica.run(
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= \(count / 2))
        INSERT INTO t(id, c0) SELECT '\(half)-' || i, printf('%.*c', \(count == 20 ? 9000 : 1), 'x')
        FROM n
        """)
    }
    let error = #expect(throws: DatabaseError.self) { try replica.run(statement) }
    let message = try #require(error?.description)
    #expect(error?.code == DatabaseError.tooManyWritesCode)
    #expect(message.contains("the transaction writes more than"))
    #expect(message.contains("`ferry batch`") && message.contains("smaller transactions"))
  }

  @Test("original texts of text-merge never make an operation too large")
  func originals() throws {
    let replica = try ReplicaFixture(limits: limits)
    let columns = (0..<8).map { "c\($0) TEXT" }.joined(separator: ", ")
    try replica.run("CREATE TABLE t(id TEXT PRIMARY KEY, \(columns))")
    try replica.file.track(["t"])
    let schema = #"{"version":1,"tables":{"t":{"policy":"text-merge"}}}"#
    try replica.apply([
      maker.change(
        1, "ferry_schema", "schema", [Column("version", 1), Column("document", .text(schema))])
    ])
    let texts = (0..<8).map { "c\($0) = printf('%.*c', 4500, 'x')" }.joined(separator: ", ")
    try replica.run("INSERT INTO t(id) VALUES ('a')")
    try replica.run("UPDATE t SET \(texts)")
    try replica.run(
      "UPDATE t SET \((0..<8).map { "c\($0) = c\($0) || 'y'" }.joined(separator: ", "))")
    for operation in try replica.pending {
      let values = (operation.columns + operation.originals).reduce(0) { $0 + $1.value.byteCount }
      #expect(values <= limits.operationBytes)
    }
    #expect(try replica.pending.map(\.originals.count).reduce(0, +) == 8)
  }
}
