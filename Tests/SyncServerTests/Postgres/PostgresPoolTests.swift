import FerryPlatform
import FerryPostgres
import FerryTestSupport
import Synchronization
import Testing

@Suite("A PostgreSQL pool", .hangLimit)
struct PostgresPoolTests {
  @Test("more jobs than connections all run, on no more connections than allowed")
  func moreJobsThanConnections() async throws {
    let database = try await TestDatabase(
      connections: 3, setUp: ["CREATE TABLE t (id bigint PRIMARY KEY)"])
    let pool = database.pool
    let insert = PostgresStatement("insert", "INSERT INTO t VALUES ($1)")
    let backends = try await withThrowingTaskGroup(of: Int32.self) { group in
      for id in 0..<200 {
        group.addTask {
          try await pool.run { connection in
            _ = try connection.query(insert, [.int8(Int64(id))])
            return connection.backendProcessID
          }
        }
      }
      return try await group.reduce(into: Set<Int32>()) { $0.insert($1) }
    }
    #expect(backends.count <= 3)
    #expect(try await pool.run { try $0.int8("SELECT count(*) FROM t") } == 200)
  }

  @Test("each new connection is prepared")
  func prepareConnection() async throws {
    let url = try await TestDatabase().url
    let pool = try PostgresPool(
      url: url, connections: 1, settings: [("statement_timeout", "1234567ms")])
    let setting = try await pool.run { connection in
      try connection.query(.once("SHOW statement_timeout"))[0].text(0)
    }
    #expect(setting == "1234567ms")
    let name = try await pool.run { try $0.query(.once("SHOW application_name"))[0].text(0) }
    #expect(name == "ferryd")
    await pool.close()
  }

  @Test(
    "a connection that its preparation refuses does no work, and the next one is prepared again")
  func refusedConnection() async throws {
    let database = try await TestDatabase(setUp: ["CREATE TABLE t (id bigint)"])
    let attempts = Atomic(0)
    var options = PostgresPool.Options()
    options.preparation = { _ in
      guard attempts.add(1, ordering: .relaxed).oldValue > 0 else {
        throw PostgresError(.connectionFailed, "a stranger")
      }
    }
    let pool = try PostgresPool(url: database.url, connections: 1, options: options)
    await #expect(throws: PostgresError(.connectionFailed, "a stranger")) {
      try await pool.run { try $0.execute("INSERT INTO t VALUES (1)") }
    }
    for _ in 0..<2 { try await pool.run { try $0.execute("INSERT INTO t VALUES (2)") } }
    #expect(attempts.load(ordering: .relaxed) == 2)
    #expect(try await pool.run { try $0.int8("SELECT count(*) FROM t WHERE id = 2") } == 2)
    #expect(try await pool.run { try $0.int8("SELECT count(*) FROM t") } == 2)
    await pool.close()
  }

  @Test("a user that comes behind four hundred jobs of another is served second")
  func turns() async throws {
    let database = try await TestDatabase()
    var options = PostgresPool.Options()
    options.shares.waitingMax = 1_024
    let pool = try PostgresPool(url: database.url, connections: 1, options: options)
    // Holds the only connection until another one lets the advisory lock go.
    let holder = try PostgresPool(url: database.url, connections: 1)
    try await holder.run { try $0.execute("SELECT pg_advisory_lock(1)") }
    let (started, startedSignal) = AsyncStream.makeStream(of: Void.self)
    let busy = Task {
      try await pool.run { connection in
        startedSignal.finish()
        try connection.execute("SELECT pg_advisory_lock(1)")
      }
    }
    for await _ in started {}
    let order = UserOrder()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<400 { group.addTask { try await order.note("ada", on: pool) } }
      try await eventually("400 callers") { pool.waitingCount >= 400 }
      group.addTask { try await order.note("eve", on: pool) }
      try await eventually("401 callers") { pool.waitingCount >= 401 }
      try await holder.run { try $0.execute("SELECT pg_advisory_unlock(1)") }
      try await group.waitForAll()
    }
    try await busy.value
    #expect(order.users.withLock { $0.firstIndex(of: "eve") } == 1)
    await pool.close()
    await holder.close()
  }

  @Test("work that is cancelled while it waits never runs")
  func cancelledWhileWaiting() async throws {
    let database = try await TestDatabase(setUp: ["CREATE TABLE t (id bigint)"])
    let pool = database.pool
    let (started, startedSignal) = AsyncStream.makeStream(of: Void.self)
    // Holds the only connection until another one lets the advisory lock go.
    let holder = try PostgresPool(url: database.url, connections: 1)
    try await holder.run { try $0.execute("SELECT pg_advisory_lock(1)") }
    let busy = Task {
      try await pool.run { connection in
        startedSignal.finish()
        try connection.execute("SELECT pg_advisory_lock(1)")
      }
    }
    for await _ in started {}
    let waiting = Task {
      try await pool.run { try $0.execute("INSERT INTO t VALUES (1)") }
    }
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    try await holder.run { try $0.execute("SELECT pg_advisory_unlock(1)") }
    try await busy.value
    #expect(try await pool.run { try $0.int8("SELECT count(*) FROM t") } == 0)
    await holder.close()
  }

  @Test("closing completes waiting work, refuses new work, and disconnects")
  func closing() async throws {
    let database = try await TestDatabase(
      connections: 2, setUp: ["CREATE TABLE t (id bigint)"])
    let pool = database.pool
    let finished = try await withThrowingTaskGroup(of: Int64.self) { group in
      for _ in 0..<20 {
        group.addTask {
          do {
            try await pool.run { try $0.execute("INSERT INTO t VALUES (1)") }
            return 1
          } catch let error as PostgresError {
            #expect(error.kind == .poolClosed)
            return 0
          }
        }
      }
      group.addTask {
        await pool.close()
        return 0
      }
      return try await group.reduce(0, +)
    }
    await #expect(throws: PostgresError.self) { try await pool.run { _ in } }
    let other = try PostgresPool(url: database.url, connections: 1)
    let rows = try await other.run { try $0.int8("SELECT count(*) FROM t") }
    #expect(rows == finished)
    await other.close()
  }
}

/// The order in which users' work ran.
private final class UserOrder: Sendable {
  let users = Mutex([String]())

  func note(_ user: String, on pool: PostgresPool) async throws {
    try await WorkFlow(user: user).run { () async -> Result<Void, any Error> in
      do {
        return .success(
          try await pool.run(in: .pull) { _ in self.users.withLock { $0.append(user) } })
      } catch {
        return .failure(error)
      }
    }.get()
  }
}
