import FerryTestSupport
import Testing

@testable import FerryPostgres

@Suite("Transactions of a log", .hangLimit)
struct TransactionAssemblerTests {
  private typealias Bytes = PgoutputBytes

  private static func parts(
    _ messages: [[UInt8]], bytesMax: Int = 1 << 20
  ) throws -> [ReplicatedPart] {
    var assembler = TransactionAssembler(bytesMax: bytesMax)
    return try messages.compactMap { try assembler.add(PgoutputDecoder.decode($0[...])) }
  }

  @Test("a transaction is handed on as a whole, with its tables and messages")
  func whole() throws {
    let parts = try Self.parts([
      Bytes.begin(5, commit: 10), Bytes.origin, Bytes.message("ferry.mirror", "3"),
      Bytes.relation(1, ["id", "title"]), Bytes.insert(1, ["a", "x"]), Bytes.type,
      Bytes.update(1, ("O", ["a", "x"]), ["a", "…"]), Bytes.truncate([1]),
      Bytes.commit(10, end: 12), Bytes.begin(6, commit: 20), Bytes.delete(1, "O", ["a", "x"]),
      Bytes.commit(20, end: 22),
    ])
    #expect(parts.map(\.xid) == [5, 6])
    #expect(parts.map(\.end) == [PostgresLSN(12), PostgresLSN(22)])
    #expect(parts.map(\.isFirst) == [true, true])
    #expect(parts.map(\.changes.count) == [4, 1])
    guard case .message("ferry.mirror", let content) = parts[0].changes[0],
      case .update(let relation, .row?, let new) = parts[0].changes[2]
    else {
      Issue.record("other changes")
      return
    }
    #expect(content == Array("3".utf8))
    #expect(relation.name == "tasks" && new == Bytes.values(["a", "…"]))
  }

  @Test("a large transaction is handed on in parts, in order, and only the last one has an end")
  func parts() throws {
    let rows = (0..<100).map { Bytes.insert(1, ["row \($0)", String(repeating: "x", count: 200)]) }
    let messages =
      [Bytes.begin(5, commit: 10), Bytes.relation(1, ["id", "title"])] + rows
      + [Bytes.commit(10, end: 12)]
    let parts = try Self.parts(messages, bytesMax: 2_000)
    #expect(parts.count > 10)
    #expect(parts.allSatisfy { $0.changes.count < 10 })
    #expect(parts.map(\.isFirst) == [true] + Array(repeating: false, count: parts.count - 1))
    #expect(parts.dropLast().allSatisfy { $0.end == nil } && parts.last?.end == PostgresLSN(12))
    let one = try Self.parts(messages)
    #expect(parts.flatMap(\.changes) == one[0].changes)
  }

  @Test("a changed table has the new columns from then on")
  func changedTable() throws {
    let parts = try Self.parts([
      Bytes.begin(5, commit: 10), Bytes.relation(1, ["id"]), Bytes.insert(1, ["a"]),
      Bytes.relation(1, ["id", "title"]), Bytes.insert(1, ["b", nil]), Bytes.commit(10, end: 12),
    ])
    let counts = parts[0].changes.map { change in
      if case .insert(let relation, _) = change { relation.columns.count } else { 0 }
    }
    #expect(counts == [1, 2])
  }

  @Test("a message outside of a transaction is ignored, if it is not transactional")
  func loose() throws {
    #expect(try Self.parts([Bytes.message("p", "x", isTransactional: false)]).isEmpty)
  }

  @Test(
    "messages in an impossible order are errors",
    arguments: [
      [Bytes.begin(5, commit: 10), Bytes.begin(6, commit: 11)],
      [Bytes.commit(10, end: 12)],
      [Bytes.begin(5, commit: 10), Bytes.commit(11, end: 12)],
      [Bytes.begin(5, commit: 10), Bytes.commit(10, end: 9)],
      [Bytes.begin(5, commit: 10), Bytes.insert(1, ["a"])],
      [Bytes.relation(1, ["id"]), Bytes.insert(1, ["a"])],
      [Bytes.begin(5, commit: 10), Bytes.relation(1, ["id"]), Bytes.insert(1, ["a", "b"])],
      [Bytes.begin(5, commit: 10), Bytes.relation(1, ["id"]), Bytes.delete(1, "O", [])],
      [
        Bytes.begin(5, commit: 10), Bytes.relation(1, ["id"]), Bytes.update(1, ("O", []), ["a"]),
      ],
      [Bytes.begin(5, commit: 10), Bytes.truncate([3])],
      [Bytes.message("p", "x")],
    ])
  func impossible(_ messages: [[UInt8]]) {
    #expect(throws: ReplicationFault.self) { try Self.parts(messages) }
  }

  @Test("only stored transactions, and a log without any, are confirmed")
  func progress() {
    var progress = ReplicationProgress(stored: PostgresLSN(10))
    #expect(progress.isStored(commit: PostgresLSN(9)))
    // A commit may begin right behind the former one.
    #expect(!progress.isStored(commit: PostgresLSN(10)))
    progress.receive(at: PostgresLSN(20))
    progress.keepalive(PostgresLSN(30), isIdle: false)
    #expect(progress.confirmed == PostgresLSN(10) && progress.received == PostgresLSN(30))
    progress.store(PostgresLSN(20))
    #expect(progress.confirmed == PostgresLSN(20) && progress.stored == PostgresLSN(20))
    progress.keepalive(PostgresLSN(40), isIdle: true)
    #expect(progress.confirmed == PostgresLSN(40) && progress.stored == PostgresLSN(20))
    // A server sends from an earlier position after a break.
    progress.store(PostgresLSN(15))
    progress.keepalive(PostgresLSN(5), isIdle: true)
    #expect(progress.confirmed == PostgresLSN(40) && progress.stored == PostgresLSN(20))
  }
}
