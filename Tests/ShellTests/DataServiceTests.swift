import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerryShell
@testable import FerrySyncClient

@Suite("The data services", .hangLimit)
struct DataServiceTests {

  /// A replica with a table, and a page's files.
  private struct Stage {
    let folder: TemporaryDirectory
    let replica: Replica
    let services: DataServices
    let files = PageFiles(prefix: "/t/1/-/files/")
    let bundle: PageVersion

    init(tables: [Name]? = nil) async throws {
      bundle = PageVersion(
        name: "probe", version: "1", entry: try #require(BundlePath("index.html")), services: [])
      folder = try TemporaryDirectory()
      replica = try await Replica.open(folder.file("a.db").path)
      try await replica.write {
        try $0.execute(
          "CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT NOT NULL, done INTEGER, size)")
      }
      try await replica.track("tasks")
      services = DataServices(replica, tables: tables)
    }

    func argument(_ value: ServiceValue) -> ServiceCall {
      ServiceCall(argument: value, bundle: bundle, files: files)
    }

    /// Calls a service as the bridge does, with both checks of schemas.
    func call(_ service: Service, _ value: ServiceValue) async throws -> ServiceValue {
      if let fault = service.argument.fault(in: value) { throw ServiceError.badRequest(fault) }
      let handler = try #require(service.handler)
      let result = try await handler(argument(value))
      #expect(service.result.fault(in: result) == nil)
      return result
    }

    func write(_ changes: ServiceValue...) async throws {
      _ = try await call(services.write, ["changes": .list(changes)])
    }

    func add(_ id: String, _ title: String, done: Bool = false, size: ServiceValue = nil)
      async throws
    {
      try await write([
        "table": "tasks", "action": "insert",
        "values": ["id": .text(id), "title": .text(title), "done": .bool(done), "size": size],
      ])
    }

    func titles(_ query: ServiceValue) async throws -> [String] {
      var query = query
      if case .object(var members) = query {
        members["table"] = "tasks"
        query = .object(members)
      }
      return try await call(services.query, query).list?.compactMap { $0["title"]?.text } ?? []
    }

    /// Notes conflicts on columns of a table, as a pull does.
    func conflict(in table: Name, count: Int = 1) async throws {
      let stamp = Stamp(
        time: HybridTimestamp(milliseconds: 1), device: DeviceID(UniqueID(high: 1, low: 1)))
      try await replica.thread.run { file in
        try file.connection.transaction {
          for number in 1...count {
            try file.conflicts.store(
              Conflict(column: "title", lost: .text("x"), loser: stamp, winner: stamp),
              of: OperationID(UniqueID(high: 2, low: UInt64(number))),
              on: RecordKey(table: table, record: "r"), at: nil, now: 1)
          }
        }
      }
    }

    func code(_ service: Service, _ value: ServiceValue) async -> String? {
      do {
        _ = try await call(service, value)
        return nil
      } catch {
        return ServiceError(error).code
      }
    }
  }

  @Test("a query has a condition, an order, a limit and columns")
  func query() async throws {
    let stage = try await Stage()
    try await stage.add("t1", "milk")
    try await stage.add("t2", "bread", done: true)
    try await stage.add("t3", "salt")
    #expect(try await stage.titles(["order": ["title"]]) == ["bread", "milk", "salt"])
    #expect(try await stage.titles(["order": ["-title"], "limit": 1]) == ["salt"])
    #expect(try await stage.titles(["order": ["title"], "offset": 1]) == ["milk", "salt"])
    #expect(try await stage.titles(["where": ["=", "done", true]]) == ["bread"])
    #expect(try await stage.titles(["where": ["=", ["key": true], "t3"]]) == ["salt"])
    let either: ServiceValue = ["or", ["=", "title", "milk"], ["in", "title", "salt"]]
    #expect(try await stage.titles(["where": either, "order": ["title"]]) == ["milk", "salt"])
    let columns = try await stage.call(
      stage.services.query, ["table": "tasks", "columns": ["id"], "order": ["id"], "limit": 1])
    #expect(columns == [["id": "t1"]])
    let count = try await stage.call(
      stage.services.count, ["table": "tasks", "where": ["=", "done", 0], "limit": 1])
    #expect(count == 2)
  }

  @Test("texts of a query never become SQL")
  func injection() async throws {
    let stage = try await Stage()
    try await stage.add("t1", "milk")
    let evil = "x' OR 1=1; DROP TABLE tasks; --"
    #expect(try await stage.titles(["where": ["=", "title", .text(evil)]]).isEmpty)
    for query: ServiceValue in [
      ["order": [.text(evil)]], ["columns": [.text(evil)]], ["where": ["=", .text(evil), 1]],
      ["order": ["title; DROP TABLE tasks"]], ["columns": ["count(*)"]],
    ] {
      await #expect(throws: (any Error).self) { try await stage.titles(query) }
    }
    for table in ["tasks; DROP TABLE tasks", "tasks AS t", "pragma_table_list", "(SELECT 1)"] {
      let code = await stage.code(stage.services.query, ["table": .text(table)])
      #expect(code != nil, "\(table)")
    }
    #expect(try await stage.titles([:]) == ["milk"])
  }

  @Test("Ferry's own tables and tables that the app does not name do not exist for pages")
  func tables() async throws {
    let stage = try await Stage(tables: ["tasks"])
    try await stage.replica.write { try $0.execute("CREATE TABLE secrets(id TEXT PRIMARY KEY)") }
    for table in ["secrets", "ferry_operations", "FERRY_state", "sqlite_schema", "sqlite_master"] {
      let named: ServiceValue = ["table": .text(table)]
      #expect(await stage.code(stage.services.query, named) == "no_table", "\(table)")
      let change: ServiceValue = [
        "table": .text(table), "action": "delete", "values": ["id": "x"],
      ]
      #expect(await stage.code(stage.services.write, ["changes": [change]]) == "no_table")
      let batch: ServiceValue = ["table": .text(table), "where": ["always"], "delete": true]
      #expect(await stage.code(stage.services.batch, batch) == "no_table")
    }
    #expect(await stage.code(stage.services.query, ["table": "TASKS"]) == nil)
    let all = try await Stage()
    #expect(await all.code(all.services.query, ["table": "ferry_operations"]) == "no_table")
  }

  @Test("writes are one transaction, and are recorded for the sync")
  func writes() async throws {
    let stage = try await Stage()
    try await stage.add("t1", "milk")
    let changes: [ServiceValue] = [
      ["table": "tasks", "action": "update", "values": ["id": "t1", "done": true]],
      ["table": "tasks", "action": "upsert", "values": ["id": "t2", "title": "bread"]],
      ["table": "tasks", "action": "delete", "values": ["id": "none"]],
    ]
    let result = try await stage.call(stage.services.write, ["changes": .list(changes)])
    #expect(result == ["changed": 2])
    let failing: ServiceValue = [
      "changes": [
        ["table": "tasks", "action": "delete", "values": ["id": "t1"]],
        ["table": "tasks", "action": "insert", "values": ["id": "t2", "title": "again"]],
      ]
    ]
    #expect(await stage.code(stage.services.write, failing) == "constraint")
    #expect(try await stage.titles(["order": ["title"]]) == ["bread", "milk"])
    let pending = try await stage.replica.operations.pending().map { $0.operation.key.record }
    #expect(Set(pending) == ["t1", "t2"])
  }

  @Test("a batch changes or deletes the records that match")
  func batch() async throws {
    let stage = try await Stage()
    for id in ["t1", "t2", "t3"] { try await stage.add(id, "task \(id)") }
    let matched = try await stage.call(
      stage.services.batch,
      ["table": "tasks", "where": ["in", ["key": true], "t1", "t2"], "set": ["done": true]])
    #expect(matched == ["matched": 2])
    let deleted = try await stage.call(
      stage.services.batch, ["table": "tasks", "where": ["=", "done", 1], "delete": true])
    #expect(deleted == ["matched": 2])
    #expect(try await stage.titles([:]) == ["task t3"])
    let both: ServiceValue = [
      "table": "tasks", "where": ["always"], "set": ["done": true], "delete": true,
    ]
    #expect(await stage.code(stage.services.batch, both) == "invalid_argument")
  }

  @Test(
    "every value of a column survives",
    arguments: [
      (.null, .null), (.integer(5), 5), (.integer(.max), ["int": "9223372036854775807"]),
      (.integer(-9_007_199_254_740_992), ["int": "-9007199254740992"]), (.real(1.5), 1.5),
      (.real(.infinity), ["real": "inf"]), (.text("é\u{0}"), "é\u{0}"),
      (.blob([1, 2, 255]), ["blob": "AQL/"]),
    ] as [(Value, ServiceValue)])
  func values(stored: Value, shown: ServiceValue) async throws {
    let stage = try await Stage()
    try await stage.add("t1", "milk", size: shown)
    let read = try await stage.replica.read { try $0.query("SELECT size FROM tasks")[0]["size"] }
    #expect(read == stored)
    let rows = try await stage.call(stage.services.query, ["table": "tasks"])
    #expect(rows.list?.first?["size"] == shown)
  }

  @Test("bytes that are too many for a message have an address, in both directions")
  func blobs() async throws {
    let stage = try await Stage()
    let bytes = seededBytes(7, 100_000)
    let address = stage.files.add(bytes, mediaType: "image/png")
    try await stage.add("t1", "milk", size: ["file": .text(address)])
    let rows = try await stage.call(stage.services.query, ["table": "tasks"])
    let shown = try #require(rows.list?.first?["size"])
    #expect(shown["size"] == 100_000)
    let file = try #require(shown["file"]?.text)
    #expect(try await stage.files.content(at: file)?.readAll() == bytes)
    let code = await stage.code(
      stage.services.write,
      [
        "changes": [
          [
            "table": "tasks", "action": "update",
            "values": ["id": "t1", "size": ["file": "/etc/passwd"]],
          ]
        ]
      ])
    #expect(code == "invalid_argument")
  }

  @Test("bytes count for the size of a result, within the message and behind addresses")
  func sizes() async throws {
    let stage = try await Stage()
    try await stage.replica.write {
      try $0.execute("CREATE TABLE pictures(id INTEGER PRIMARY KEY, small BLOB, large BLOB)")
      try $0.execute(
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
        INSERT INTO pictures SELECT i, zeroblob(4096), iif(i <= 65, zeroblob(1048576), NULL) FROM n
        """)
    }
    func code(_ column: ServiceValue, limit: ServiceValue) async -> String? {
      await stage.code(
        stage.services.query, ["table": "pictures", "columns": [column], "limit": limit])
    }
    #expect(await code("id", limit: 10_000) == nil)
    #expect(await code("small", limit: 2_000) == nil)
    #expect(await code("small", limit: 10_000) == "too_large")
    #expect(await code("large", limit: 2) == nil)
    #expect(await code("large", limit: 10_000) == "too_large")
  }

  @Test("a page neither sees nor answers conflicts of other tables, however old they are")
  func conflicts() async throws {
    let stage = try await Stage(tables: ["tasks"])
    try await stage.conflict(in: "secrets")
    try await stage.conflict(in: "tasks", count: 10_001)
    let answer: ServiceValue = ["conflict": 1, "keep": "local"]
    #expect(await stage.code(stage.services.resolve, answer) == "no_table")
    // The newest ones are none of the page's, and take none of the page's places.
    try await stage.conflict(in: "others", count: 3)
    let listed = try await stage.call(stage.services.conflicts, ["limit": 2])
    #expect(listed.list?.compactMap { $0["conflict"]?.integer } == [10_002, 10_001])
    #expect(listed.list?.allSatisfy { $0["table"] == "tasks" } == true)
    let none = try await stage.call(stage.services.conflicts, ["openOnly": true])
    #expect(none == [])
  }

  @Test("a live query returns the present rows and those after each change")
  func live() async throws {
    let stage = try await Stage()
    let feed = try #require(stage.services.query.feed)
    let results = try await feed(stage.argument(["table": "tasks", "where": ["=", "done", 0]]))
    var rows = results.makeAsyncIterator()
    #expect(try await rows.next() == [])
    try await stage.add("t1", "milk")
    #expect(try await rows.next()?.list?.count == 1)
    // Of no concern to this query.
    try await stage.add("t2", "bread", done: true)
    try await stage.write([
      "table": "tasks", "action": "update", "values": ["id": "t1", "done": true],
    ])
    #expect(try await rows.next() == [])
  }

  @Test("the status follows writes")
  func status() async throws {
    let stage = try await Stage()
    let feed = try #require(stage.services.status.feed)
    var results = try await feed(stage.argument(nil)).makeAsyncIterator()
    var status = try await results.next()
    #expect(status?["pending"] == 0)
    #expect(status?["phase"] == "idle")
    try await stage.add("t1", "milk")
    while status?["pending"] == 0 { status = try await results.next() }
    #expect(status?["pending"] == 1)
    #expect(await stage.code(stage.services.sync, nil) == "not_configured")
    #expect(
      await stage.code(stage.services.resolve, ["conflict": 7, "keep": "local"]) == "not_found")
    #expect(await stage.code(stage.services.resolve, ["conflict": 7]) == "invalid_argument")
    // The codes of errors are those of `ferry --json`.
    #expect(ServiceError(ReplicaError.untrusted("expired")).code == "untrusted")
    #expect(ServiceError(ReplicaError.database("UNIQUE", code: 19)).code == "constraint")
  }
}
