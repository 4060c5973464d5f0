import FerryPostgres
import FerryTestSupport
import Testing

@Suite("A PostgreSQL connection", .hangLimit)
struct PostgresConnectionTests {
  private static let table = "CREATE TABLE t (id bigint PRIMARY KEY, body text NOT NULL)"
  private static let insert = PostgresStatement("insert", "INSERT INTO t VALUES ($1, $2)")
  private static let count = PostgresStatement("count", "SELECT count(*) FROM t")

  @Test("a statement is prepared once on a connection")
  func preparedOnce() async throws {
    let database = try await TestDatabase(setUp: [Self.table])
    try await database.pool.run { connection in
      for id in 0..<5 { _ = try connection.query(Self.insert, [.int8(Int64(id)), .text("x")]) }
      #expect(try connection.query(Self.count)[0].int8(0) == 5)
      let statements = try connection.query(
        .once("SELECT name FROM pg_prepared_statements ORDER BY name"))
      #expect(try statements.map { try $0.text(0) } == ["count", "insert"])
    }
  }

  @Test("a statement that cannot be prepared is prepared again at the next use")
  func failedPrepare() async throws {
    let database = try await TestDatabase()
    try await database.pool.run { connection in
      let missing = #expect(throws: PostgresError.self) { try connection.query(Self.count) }
      #expect(missing?.sqlState == "42P01")
      #expect(missing?.kind == .server)
      #expect(missing?.isRetryable == false)
      try connection.execute(Self.table)
      #expect(try connection.query(Self.count)[0].int8(0) == 0)
    }
  }

  @Test("a violated constraint is reported with its name and detail")
  func constraintError() async throws {
    let database = try await TestDatabase(setUp: [Self.table])
    try await database.pool.run { connection in
      _ = try connection.query(Self.insert, [.int8(1), .text("x")])
      let error = #expect(throws: PostgresError.self) {
        try connection.query(Self.insert, [.int8(1), .text("y")])
      }
      #expect(error?.sqlState == "23505")
      #expect(error?.severity == "ERROR")
      #expect(error?.constraint == "t_pkey")
      #expect(error?.detail == "Key (id)=(1) already exists.")
      #expect(error?.mayHaveCommitted == false)
    }
  }

  @Test("several statements run in one simple query")
  func severalStatements() async throws {
    let database = try await TestDatabase()
    try await database.pool.run { connection in
      try connection.execute("\(Self.table); INSERT INTO t VALUES (1, 'a'), (2, 'b');")
      #expect(try connection.query(Self.count)[0].int8(0) == 2)
    }
  }

  @Test("a pipeline returns each statement's answer in order")
  func pipelineResults() async throws {
    let database = try await TestDatabase(setUp: [Self.table])
    try await database.pool.run { connection in
      let results = try connection.pipeline { pipeline in
        for id in 0..<100 { pipeline.add(Self.insert, [.int8(Int64(id)), .text("\(id)")]) }
        let place = pipeline.add(Self.count)
        #expect(place == 100)
      }
      #expect(results.count == 101)
      #expect(results[..<100].allSatisfy { $0.affected == 1 })
      #expect(try results[100][0].int8(0) == 100)
      #expect(try connection.pipeline { _ in }.isEmpty)
    }
  }

  @Test("an error in a pipeline rolls back all of it, and the connection stays usable")
  func pipelineError() async throws {
    let database = try await TestDatabase(setUp: [Self.table])
    try await database.pool.run { connection in
      let backend = connection.backendProcessID
      let error = #expect(throws: PostgresError.self) {
        try connection.pipeline { pipeline in
          pipeline.add(Self.insert, [.int8(1), .text("a")])
          pipeline.add(.once("SELECT 1 / 0"))
          pipeline.add(Self.insert, [.int8(2), .text("b")])
          pipeline.add(Self.count)
        }
      }
      #expect(error?.sqlState == "22012")
      #expect(try connection.query(Self.count)[0].int8(0) == 0)
      _ = try connection.pipeline { $0.add(Self.insert, [.int8(3), .text("c")]) }
      #expect(try connection.query(Self.count)[0].int8(0) == 1)
      #expect(connection.backendProcessID == backend)
    }
  }

  @Test("a constraint that is checked at commit fails the pipeline")
  func deferredConstraint() async throws {
    let database = try await TestDatabase(setUp: [
      Self.table,
      """
      CREATE TABLE child (t bigint REFERENCES t DEFERRABLE INITIALLY DEFERRED)
      """,
    ])
    try await database.pool.run { connection in
      let addChild = PostgresStatement("child", "INSERT INTO child VALUES ($1)")
      let implicit = #expect(throws: PostgresError.self) {
        try connection.query(addChild, [.int8(9)])
      }
      #expect(implicit?.sqlState == "23503")
      let explicit = #expect(throws: PostgresError.self) {
        try connection.transaction { transaction in
          _ = try transaction.pipeline { pipeline in
            pipeline.add(addChild, [.int8(9)])
            pipeline.commit()
          }
        }
      }
      #expect(explicit?.sqlState == "23503")
      _ = try connection.pipeline { pipeline in
        pipeline.add(addChild, [.int8(9)])
        pipeline.add(Self.insert, [.int8(9), .text("parent")])
      }
      #expect(try connection.int8("SELECT count(*) FROM child") == 1)
    }
  }

  @Test("a pipeline larger than every buffer in both directions does not deadlock")
  func largePipeline() async throws {
    let database = try await TestDatabase()
    let piece = [UInt8](repeating: 7, count: 1 << 20)
    try await database.pool.run { connection in
      let results = try connection.pipeline { pipeline in
        // The server writes this long before it reads the rest, and stops while the client does not
        // read.
        pipeline.add(.once("SELECT repeat('x', 64 << 20)"))
        for _ in 0..<64 { pipeline.add(.once("SELECT length($1)"), [.bytea(piece)]) }
      }
      #expect(results.count == 65)
      #expect(try results[0][0].bytes(0) { $0.count } == 64 << 20)
      #expect(try results[1...].allSatisfy { try $0[0].int4(0) == 1 << 20 })
    }
  }

  @Test("an observer's name is the server's for each transaction alone, and statements are kept")
  func observed() async throws {
    let database = try await TestDatabase(setUp: [Self.table])
    let name = "ferryd 00-" + String(repeating: "a", count: 32) + "-bbbbbbbbbbbbbbbb-01"
    #expect(name.utf8.count <= 63)
    let setting = PostgresStatement("setting", "SELECT current_setting('application_name')")
    let before = try await database.pool.run { try $0.query(setting)[0].text(0) }
    let trips = try await database.pool.run { connection -> [String] in
      var trips: [String] = []
      connection.observer = PostgresObserver(applicationName: name) { statements in
        { trips.append(statements.joined(separator: "+") + ($0 == nil ? "" : "!")) }
      }
      try connection.transaction { connection in
        #expect(try connection.query(setting)[0].text(0) == name)
        _ = try connection.query(Self.insert, [.int8(1), .text("x")])
        #expect(try connection.query(setting)[0].text(0) == name)
      }
      #expect(throws: PostgresError.self) {
        try connection.query(Self.insert, [.int8(1), .text("y")])
      }
      try connection.transaction(.snapshot) { connection in
        let results = try connection.pipeline { pipeline in
          pipeline.add(setting)
          pipeline.add(Self.count)
          pipeline.commit()
        }
        #expect(try results[0][0].text(0) == name && results[1][0].int8(0) == 1)
      }
      connection.observer = nil
      #expect(try connection.query(setting)[0].text(0) == before)
      return trips
    }
    #expect(
      trips
        == ["setting", "insert", "setting", "COMMIT", "insert!", "setting+count+COMMIT"])
    try await database.pool.run { connection in
      #expect(connection.observer == nil)
      let statements = try connection.query(
        .once("SELECT name FROM pg_prepared_statements ORDER BY name"))
      #expect(try statements.map { try $0.text(0) } == ["count", "insert", "setting"])
    }
  }
}
