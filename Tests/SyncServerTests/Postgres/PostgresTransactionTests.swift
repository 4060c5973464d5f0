import FerryPostgres
import FerryTestSupport
import Testing

@Suite("A PostgreSQL transaction", .hangLimit)
struct PostgresTransactionTests {
  private struct Refusal: Error {}

  private static let table = "CREATE TABLE t (id bigint PRIMARY KEY)"
  private static let insert = PostgresStatement("insert", "INSERT INTO t VALUES ($1)")
  private static let count = PostgresStatement("count", "SELECT count(*) FROM t")

  @Test("a transaction commits when the body returns, and rolls back when it throws")
  func commitAndRollback() async throws {
    let database = try await TestDatabase(setUp: [Self.table])
    try await database.pool.run { connection in
      try connection.transaction { _ = try $0.query(Self.insert, [.int8(1)]) }
      #expect(throws: Refusal.self) {
        try connection.transaction { transaction in
          _ = try transaction.query(Self.insert, [.int8(2)])
          try transaction.execute("INSERT INTO t VALUES (3)")
          throw Refusal()
        }
      }
      try connection.transaction { try $0.execute("INSERT INTO t VALUES (4)") }
      try connection.transaction { _ in }
      let ids = try connection.query(.once("SELECT id FROM t ORDER BY id"))
      #expect(try ids.map { try $0.int8(0) } == [1, 4])
    }
  }

  @Test("a transaction can be committed by its last pipeline")
  func pipelinedCommit() async throws {
    let database = try await TestDatabase(connections: 2, setUp: [Self.table])
    try await database.pool.run { connection in
      let before = try connection.transaction { transaction in
        let read = try transaction.pipeline { $0.add(Self.count) }
        _ = try transaction.pipeline { pipeline in
          pipeline.add(Self.insert, [.int8(1)])
          pipeline.commit()
        }
        return try read[0][0].int8(0)
      }
      #expect(before == 0)
    }
    #expect(try await database.pool.run { try $0.query(Self.count)[0].int8(0) } == 1)
  }

  @Test("after a statement's ignored error, the rest does not count as committed")
  func swallowedError() async throws {
    let database = try await TestDatabase(setUp: [Self.table])
    try await database.pool.run { connection in
      let plain = #expect(throws: PostgresError.self) {
        try connection.transaction { transaction in
          _ = try transaction.query(Self.insert, [.int8(1)])
          _ = try? transaction.query(.once("SELECT 1 / 0"))
        }
      }
      #expect(plain?.sqlState == "25P02")
      let pipelined = #expect(throws: PostgresError.self) {
        try connection.transaction { transaction in
          _ = try? transaction.query(.once("SELECT 1 / 0"))
          _ = try transaction.pipeline { $0.commit() }
        }
      }
      #expect(pipelined?.sqlState == "25P02")
      let rows = try connection.query(Self.count)[0].int8(0)
      #expect(rows == 0)
    }
  }

  @Test("a serialisation failure is retryable")
  func serialisationFailure() async throws {
    let database = try await TestDatabase(setUp: [Self.table, "INSERT INTO t VALUES (1)"])
    let url = database.url
    try await database.pool.run { connection in
      let error = #expect(throws: PostgresError.self) {
        try connection.transaction(.repeatableRead) { transaction in
          _ = try transaction.query(Self.count)
          try PostgresConnection(url: url).execute("UPDATE t SET id = id + 1")
          try transaction.execute("UPDATE t SET id = id + 1")
        }
      }
      #expect(error?.sqlState == "40001")
      #expect(error?.isRetryable == true)
    }
  }

  @Test("a transaction that was left open is rolled back before the connection's next use")
  func leftOpen() async throws {
    let database = try await TestDatabase(setUp: [Self.table])
    try await database.pool.run { try $0.execute("BEGIN; INSERT INTO t VALUES (1)") }
    #expect(try await database.pool.run { try $0.query(Self.count)[0].int8(0) } == 0)
  }
}
