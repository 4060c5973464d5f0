import FerryTestSupport
import Testing

@testable import FerryPostgres

@Suite("A stream of a server's log", .hangLimit)
struct ReplicationStreamTests {
  /// A database with a publication, a slot, and a stream of it.
  private final class Log {
    let database: TestDatabase
    let slot: String
    private var stream: ReplicationStream?
    private var assembler = TransactionAssembler(bytesMax: 1 << 20)
    var progress = ReplicationProgress(stored: .zero)

    init() async throws {
      database = try await TestDatabase(setUp: [
        """
        CREATE TABLE tasks(id text PRIMARY KEY, title text, more text);
        ALTER TABLE tasks REPLICA IDENTITY FULL;
        ALTER TABLE tasks ALTER more SET STORAGE EXTERNAL;
        CREATE TABLE others(id text PRIMARY KEY);
        CREATE PUBLICATION "a ""name" FOR TABLE tasks
        """
      ])
      let number = try await database.pool.run {
        try $0.int8("SELECT oid::bigint FROM pg_database WHERE datname = current_database()")
      }
      slot = "ferry_test_\(number)"
      try await sql("SELECT pg_create_logical_replication_slot('\(slot)', 'pgoutput')")
      try await start()
    }

    /// Drops the slot: the server would keep its log.
    func close() async throws {
      stream = nil
      let slot = slot
      try await eventually("the slot is dropped") {
        let found = try await self.database.pool.run { connection in
          try connection.query(
            .once(
              """
              SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
              WHERE slot_name = $1 AND NOT active
              """), [.text(slot)])
        }
        return !found.isEmpty
      }
    }

    /// Connects. Another connection may have the slot for a moment.
    private func start() async throws {
      try await eventually("the slot is free") {
        let stream = try ReplicationStream(url: self.database.url, wakePipe: WakePipe())
        do {
          try stream.start(slot: self.slot, publication: "a \"name", from: .zero)
        } catch let error as PostgresError {
          guard error.sqlState == "55006" else { throw error }
          return false
        }
        self.stream = stream
        return true
      }
    }

    func sql(_ text: String) async throws { try await database.pool.run { try $0.execute(text) } }

    /// Returns the next part of a transaction, other than those of other tables alone.
    func next() throws -> ReplicatedPart {
      while true {
        let stream = try #require(stream)
        guard case .frame(let frame) = try stream.next(within: .hangLimit) else { continue }
        switch frame {
        case .keepalive(let end, let wantsReply):
          progress.keepalive(end, isIdle: !assembler.isOpen)
          if wantsReply { try stream.report(progress) }
        case .data(let start, let message):
          progress.receive(at: start)
          guard let part = try assembler.add(PgoutputDecoder.decode(message)) else { continue }
          if part.end != nil, part.changes.isEmpty { continue }
          return part
        }
      }
    }

    func confirm(_ part: ReplicatedPart) throws {
      progress.store(try #require(part.end))
      try stream?.report(progress)
    }

    /// Connects again, without a report of the position.
    func reconnect() async throws {
      stream = nil
      assembler = TransactionAssembler(bytesMax: 1 << 20)
      try await start()
    }
  }

  @Test("inserts, updates, deletes, truncates and messages arrive with the former rows")
  func arrives() async throws {
    let log = try await Log()
    try await log.sql(
      """
      BEGIN; SELECT pg_logical_emit_message(true, 'ferry.mirror', '7');
      INSERT INTO tasks VALUES ('a', NULL, repeat('long', 5000)); INSERT INTO others VALUES ('x');
      UPDATE tasks SET title = 'it''s'; COMMIT
      """)
    try await log.sql("DELETE FROM tasks")
    try await log.sql("TRUNCATE tasks")
    let first = try log.next()
    #expect(first.changes.count == 3)
    guard case .message("ferry.mirror", let content) = first.changes[0],
      case .update(let relation, .row(let old)?, let new) = first.changes[2]
    else {
      Issue.record("other changes: \(first.changes)")
      return
    }
    #expect(content == Array("7".utf8) && relation.hasWholeRows)
    #expect(old[1] == .null && new[1] == .text(Array("it's".utf8)[...]))
    // The value outside of the row has not changed: the former row has it.
    #expect(new[2] == .unchanged)
    guard case .text(let long) = old[2] else {
      Issue.record("no former value")
      return
    }
    #expect(long.count == 20_000)
    guard case .delete(_, .row) = try log.next().changes[0] else {
      Issue.record("no delete")
      return
    }
    guard case .truncate = try log.next().changes[0] else {
      Issue.record("no truncate")
      return
    }
    try await log.close()
  }

  @Test("unconfirmed transactions come again after a break, and confirmed ones do not")
  func again() async throws {
    let log = try await Log()
    for name in ["a", "b", "c"] { try await log.sql("INSERT INTO tasks VALUES ('\(name)')") }
    func key(_ part: ReplicatedPart) -> PgoutputValue? {
      if case .insert(_, let new) = part.changes[0] { new[0] } else { nil }
    }
    let first = try log.next()
    try log.confirm(first)
    #expect(key(try log.next()) == .text(Array("b".utf8)[...]))
    try await log.reconnect()
    let next = try log.next()
    // The server may have had no time to store the report.
    if !log.progress.isStored(commit: next.commit) {
      #expect(key(next) == .text(Array("b".utf8)[...]))
    }
    try await log.close()
  }

  @Test("the position moves without any change of the published tables")
  func idle() async throws {
    let log = try await Log()
    let before = log.progress.confirmed
    try await log.sql("INSERT INTO others SELECT generate_series(1, 1000)")
    try await log.sql("INSERT INTO tasks VALUES ('a')")
    _ = try log.next()
    #expect(log.progress.confirmed >= before)
    try await log.close()
  }

  @Test("a lost slot, and one in use, are reported by the server's codes")
  func unusable() async throws {
    let log = try await Log()
    let stream = try ReplicationStream(url: log.database.url, wakePipe: WakePipe())
    #expect(stream.source.system.utf8.count > 10)
    let inUse = #expect(throws: PostgresError.self) {
      try stream.start(slot: log.slot, publication: "a \"name", from: .zero)
    }
    #expect(inUse?.sqlState == "55006")
    let other = try ReplicationStream(url: log.database.url, wakePipe: WakePipe())
    let lost = #expect(throws: PostgresError.self) {
      try other.start(slot: "ferry_nothing", publication: "a \"name", from: .zero)
    }
    #expect(lost?.sqlState == "42704")
    try await log.close()
  }
}
