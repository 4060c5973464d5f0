import FerryPostgres
import FerryTestSupport
import Testing

/// A pool whose transactions get another session each.
@Suite(
  "A pool behind a pooler of transactions", .hangLimit,
  .enabled(if: TransactionPooler.isAvailable, "pgbouncer is not installed"))
struct TransactionPoolerTests {
  private static let settings: PostgresSettings = [
    ("statement_timeout", "1234567ms"), ("enable_seqscan", "off"),
  ]
  private let count = PostgresStatement("count", "SELECT count(*) FROM t WHERE id > $1")
  private let insert = PostgresStatement("insert", "INSERT INTO t VALUES ($1)")

  private func pool(
    _ pooler: TransactionPooler, _ database: TestDatabase, connections: Int,
    _ sharing: PostgresSharing = .transaction
  ) throws -> PostgresPool {
    var options = PostgresPool.Options()
    options.sharing = sharing
    return try PostgresPool(
      url: pooler.url(of: database.url), connections: connections, settings: Self.settings,
      options: options)
  }

  @Test("statements of many connections run on few sessions, with their settings and no others'")
  func statements() async throws {
    let database = try await TestDatabase(setUp: ["CREATE TABLE t (id bigint)"])
    let pooler = try await TransactionPooler(before: database.url, sessions: 2)
    let pool = try pool(pooler, database, connections: 6)
    let (insert, count) = (insert, count)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for id in 1...120 {
        group.addTask {
          try await pool.run { connection in
            if id.isMultiple(of: 2) {
              try connection.transaction { connection in
                _ = try connection.query(insert, [.int8(Int64(id))])
                let shown = try connection.query(.once("SHOW statement_timeout"))[0].text(0)
                #expect(shown == "1234567ms")
              }
            } else {
              let results = try connection.pipeline { pipeline in
                pipeline.add(insert, [.int8(Int64(id))])
                pipeline.add(.once("SHOW enable_seqscan"))
              }
              #expect(try results.count == 2 && results[1][0].text(0) == "off")
            }
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try await pool.run { try $0.query(count, [.int8(0)])[0].int8(0) } == 120)
    // Nothing stays in a session for the next client.
    let plain = try PostgresPool(url: pooler.url(of: database.url), connections: 1)
    for _ in 0..<4 {
      let shown = try await plain.run { connection in
        try connection.query(.once("SHOW statement_timeout"))[0].text(0)
      }
      #expect(shown == "0")
    }
    await plain.close()
    await pool.close()
  }

  @Test("a failed pipeline is rolled back whole, and the connection is used again")
  func failure() async throws {
    let database = try await TestDatabase(setUp: ["CREATE TABLE t (id bigint)"])
    let pooler = try await TransactionPooler(before: database.url)
    let pool = try pool(pooler, database, connections: 1)
    let (insert, count) = (insert, count)
    await #expect(throws: PostgresError.self) {
      try await pool.run { connection in
        _ = try connection.pipeline { pipeline in
          pipeline.add(insert, [.int8(1)])
          pipeline.add(.once("SELECT 1 / 0"))
        }
      }
    }
    await #expect(throws: PostgresError.self) {
      try await pool.run { connection in
        try connection.transaction { connection in
          try connection.execute("INSERT INTO t VALUES (2)")
          try connection.execute("SELECT 1 / 0")
        }
      }
    }
    #expect(try await pool.run { try $0.query(count, [.int8(0)])[0].int8(0) } == 0)
    await pool.close()
  }
}
