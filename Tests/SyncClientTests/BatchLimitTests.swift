import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// The limit of records that the batches of one packet may match (SPEC.md §14).
@Suite("The records that batches may match", .hangLimit)
struct BatchLimitTests {
  /// Returns a table of three tasks, in which the batches of a packet may match so many.
  private func tasks(upTo limit: Int) throws -> ReplicaFixture {
    var limits = Limits.standard
    limits.batchRecords = limit
    let replica = try ReplicaFixture(limits: limits)
    try replica.run("CREATE TABLE tasks(id TEXT PRIMARY KEY, done INTEGER)")
    try replica.file.track(["tasks"])
    let maker = PageMaker()
    try replica.apply(
      (["a", "b", "c"] as [Name]).enumerated().map { index, record in
        maker.change(SequenceNumber(index + 1), "tasks", record, [Column("done", 0)])
      })
    return replica
  }

  @Test("a batch over the limit is refused when it is written, and leaves nothing if it is caught")
  func refused() throws {
    let replica = try tasks(upTo: 2)
    let reason = """
      it matches 3 records of tasks, and a batch may match 2: write several batches with narrower \
      predicates
      """
    try replica.file.write { database in
      #expect(throws: ReplicaError.invalidBatch(reason)) {
        try database.batch("tasks", where: "true", set: ["done": 1])
      }
      try database.execute("UPDATE tasks SET done = 5 WHERE id = 'a'")
    }
    #expect(try replica.pending.map(\.kind) == [.update])
    #expect(try replica.rows("SELECT done FROM tasks ORDER BY id") == [[5], [0], [0]])
    #expect(try replica.rows("SELECT count(*) FROM ferry_batch_rows") == [[0]])
    _ = try replica.file.write { try $0.batchDelete("tasks", where: "id > 'a'") }
    #expect(try replica.pending.map(\.kind) == [.update, .batch])
  }

  @Test("batches that match too many records together are sent in packets of their own")
  func packets() throws {
    let replica = try tasks(upTo: 3)
    for done in 1...3 {
      _ = try replica.file.write {
        try $0.batch("tasks", where: "id < 'c'", set: ["done": .integer(Int64(done))])
      }
    }
    try replica.run("INSERT INTO tasks VALUES ('d', 1)")
    let packets = try replica.freeze()
    #expect(packets.map { $0.operations.map(\.kind) } == [[.batch], [.batch], [.batch, .insert]])
    #expect(packets.allSatisfy { !$0.continues })
  }

  @Test("a transaction whose batches match too many records continues in the next packet")
  func transaction() throws {
    let replica = try tasks(upTo: 3)
    try replica.file.write { database in
      try database.batch("tasks", where: "id < 'c'", set: ["done": 1])
      try database.batch("tasks", where: "id > 'a'", set: ["done": 2])
    }
    let packets = try replica.freeze()
    #expect(packets.map { $0.operations.map(\.kind) } == [[.batch], [.batch]])
    #expect(packets.map(\.continues) == [true, false])
  }

  /// Refuses packets with more than one batch, as if its tables had more rows.
  private static func server() -> ScriptedServer {
    ScriptedServer { request, _ in
      guard let packet = try? Packet(decoding: request.body ?? [], limits: .standard) else {
        return nil
      }
      let batches = packet.operations.filter { $0.kind == .batch }
      let isTooLarge = batches.contains { $0.columns.contains(Column("body", "all")) }
      guard batches.count > 1 || isTooLarge else { return nil }
      let refusals = batches.map {
        Refusal(
          operation: $0.id, code: .invalidPredicate, detail: "too many", table: $0.key.table,
          record: "")
      }
      return ScriptedServer.json(
        Problem(.operationRefused, "no", refusals: refusals).encoded(), status: 422)
    }
  }

  @Test("batches that match too much together on the server are sent apart, one of them refused")
  func together() async throws {
    let directory = try TemporaryDirectory()
    let server = Self.server()
    let replica = try await server.replica(in: directory)
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x')") }
    for body in ["x", "y", "all", "z"] {
      try await replica.batch("notes", where: "id = 'a'", set: ["body": .text(body)])
    }
    let report = try await replica.sync()
    #expect(report.quarantined == 1)
    let sent = server.operations.filter { $0.kind == .batch }
    #expect(Set(sent.flatMap(\.columns).map(\.value)) == ["x", "y", "z"])
    let entries = try await replica.quarantine.entries()
    #expect(entries.flatMap(\.operations).flatMap(\.columns).map(\.value) == ["all"])
    #expect(try await replica.status().pending == 0)
  }
}
