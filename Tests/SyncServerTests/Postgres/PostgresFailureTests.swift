import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

@Suite("A PostgreSQL connection that fails", .hangLimit)
struct PostgresFailureTests {
  @Test("a closed port is reported with its address")
  func serverDown() async throws {
    let port = try FreePort.refused()
    let error = try await failure("postgres://nobody@127.0.0.1:\(port)/none")
    #expect(error.kind == .connectionFailed)
    #expect(error.isRetryable)
    #expect(error.message.contains("cannot connect to PostgreSQL"))
    #expect(error.message.contains("\(port)"))
    #expect(error.message.contains("Connection refused"))
    #expect(!error.message.contains("\n"))
  }

  @Test("an unknown database is named")
  func unknownDatabase() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let error = try await failure(url + "_absent")
    #expect(error.kind == .connectionFailed)
    #expect(error.message.contains("_absent\" does not exist"))
  }

  @Test("a wrong or missing password is reported as such, and is not printed")
  func badPassword() async throws {
    let cluster = try PostgresCluster()
    let url = try cluster.createDatabase()
    let role = PostgresCluster.passwordRole
    let right = url.replacing("postgres@", with: "\(role):right@")
    let pool = try PostgresPool(url: url, connections: 1)
    try await pool.run { try $0.execute("CREATE ROLE \(role) LOGIN PASSWORD 'right'") }
    await pool.close()

    let wrong = try await failure(right.replacing("right", with: "wr0ng"))
    #expect(wrong.message.contains("password authentication failed"))
    #expect(wrong.hint == "check user and password in the database URL")
    #expect(!wrong.description.contains("wr0ng"))
    let missing = try await failure(right.replacing(":right", with: ""))
    #expect(missing.hint == "the server asks for a password and the URL has none")
    let good = try PostgresPool(url: right, connections: 1)
    #expect(try await good.run { try $0.int8("SELECT 1::bigint") } == 1)
    await good.close()
  }

  @Test("an invalid URL is refused at once, without its password")
  func malformedURL() throws {
    let urls = [
      "postgres://a:s3cret@[::1/db", "postgre://a:s3cret@host/db", "postgres://a:%s3cret@host/db",
      "host=h password='s3cret", "s3cret",
    ]
    for url in urls {
      let error = #expect(throws: PostgresError.self) {
        try PostgresPool(url: url, connections: 1)
      }
      #expect(error?.kind == .invalidURL)
      #expect(error?.description.contains("s3cret") == false)
    }
  }

  @Test("a connection that the server closed while idle is replaced without an error")
  func idleConnectionKilled() async throws {
    let database = try await TestDatabase()
    let backend = try await database.pool.run { $0.backendProcessID }
    try await TestDatabase.terminate(backend, in: database.url)
    let replacement = try await database.pool.run { connection in
      let answer = try connection.int8("SELECT 1::bigint")
      #expect(answer == 1)
      return connection.backendProcessID
    }
    #expect(replacement != backend)
  }

  @Test("a connection killed in use throws connectionLost, and the next work gets another one")
  func busyConnectionKilled() async throws {
    let database = try await TestDatabase(setUp: ["CREATE TABLE t (id bigint)"])
    let error = await #expect(throws: PostgresError.self) {
      try await database.pool.run { connection in
        let sql = "SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(60)"
        _ = try connection.query(.once(sql))
      }
    }
    #expect(error?.kind == .connectionLost)
    #expect(error?.sqlState == "57P01")
    #expect(error?.isRetryable == true)
    #expect(error?.mayHaveCommitted == true)
    let inTransaction = await #expect(throws: PostgresError.self) {
      try await database.pool.run { connection in
        try connection.transaction { transaction in
          try transaction.execute("INSERT INTO t VALUES (1)")
          _ = try transaction.pipeline { pipeline in
            pipeline.add(.once("SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(60)"))
            pipeline.add(.once("SELECT 1"))
          }
        }
      }
    }
    #expect(inTransaction?.kind == .connectionLost)
    #expect(inTransaction?.mayHaveCommitted == false)
    #expect(try await database.pool.run { try $0.int8("SELECT count(*) FROM t") } == 0)
  }

  @Test("a pool survives a crash of the server")
  func serverRestart() async throws {
    let cluster = try PostgresCluster()
    let pool = try PostgresPool(url: try cluster.createDatabase(), connections: 2)
    try await pool.run { try $0.execute("CREATE TABLE t AS SELECT 1::bigint AS id") }
    try cluster.stop(.immediate)
    let error = await #expect(throws: PostgresError.self) {
      try await pool.run { try $0.int8("SELECT id FROM t") }
    }
    #expect(error?.isRetryable == true)
    try cluster.start()
    #expect(try await pool.run { try $0.int8("SELECT id FROM t") } == 1)
    await pool.close()
  }

  private func failure(_ url: String) async throws -> PostgresError {
    let pool = try PostgresPool(url: url, connections: 1)
    let error = await #expect(throws: PostgresError.self) { try await pool.run { _ in } }
    await pool.close()
    return try #require(error)
  }
}
