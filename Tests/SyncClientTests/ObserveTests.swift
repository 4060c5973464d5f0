import FerryNetworking
import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncClient

/// Live queries of a replica.
@Suite("Live queries", .hangLimit)
struct ObserveTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func open(_ transport: any Transport = ScriptedServer()) async throws -> Replica {
    let replica = try await Replica.open(
      directory.file("replica.db").path, transport: transport, in: .system)
    try await replica.write { database in
      try database.execute(
        """
        CREATE TABLE IF NOT EXISTS lists(id TEXT PRIMARY KEY, name TEXT);
        CREATE TABLE IF NOT EXISTS tasks(
          id TEXT PRIMARY KEY, list TEXT REFERENCES lists(id) ON DELETE CASCADE) WITHOUT ROWID;
        CREATE TABLE IF NOT EXISTS other(id TEXT PRIMARY KEY);
        CREATE VIEW IF NOT EXISTS named AS SELECT t.id, l.name FROM tasks t JOIN lists l ON l.id = t.list
        """)
    }
    return replica
  }

  private static func count(_ table: String) -> @Sendable (Database) throws -> Int64 {
    { database in
      guard
        case .integer(let count)? = try database.query("SELECT count(*) FROM \(table)")
          .first?.values[0]
      else { return -1 }
      return count
    }
  }

  private func add(_ replica: Replica, _ sql: String) async throws {
    try await replica.write { _ = try $0.execute(sql) }
  }

  @Test("a result follows each commit, and equal results are left out")
  func follows() async throws {
    let replica = try await open()
    var counts = replica.observe(Self.count("lists")).makeAsyncIterator()
    #expect(try await counts.next() == 0)
    try await add(replica, "INSERT INTO lists VALUES ('a', 'x')")
    #expect(try await counts.next() == 1)
    try await add(replica, "UPDATE lists SET name = 'y'")
    try await add(replica, "INSERT INTO lists VALUES ('b', 'x')")
    #expect(try await counts.next() == 2)
  }

  @Test(
    "tables without row identifiers, views and cascades are followed",
    arguments: [false, true])
  func allKindsOfTables(isTracked: Bool) async throws {
    let replica = try await open()
    if isTracked { try await replica.track("lists", "tasks") }
    try await add(replica, "INSERT INTO lists VALUES ('a', 'x')")
    var counts = replica.observe(Self.count("named")).makeAsyncIterator()
    #expect(try await counts.next() == 0)
    try await add(replica, "INSERT INTO tasks VALUES ('t', 'a')")
    #expect(try await counts.next() == 1)
    try await add(replica, "DELETE FROM lists")
    #expect(try await counts.next() == 0)
  }

  @Test("a pull refreshes the queries of the tables that it changes")
  func pulls() async throws {
    let replica = try await open()
    try await replica.track("lists", "tasks")
    var counts = replica.observe(Self.count("tasks")).makeAsyncIterator()
    #expect(try await counts.next() == 0)
    let maker = PageMaker()
    let page = maker.page(
      [
        maker.change(1, "lists", "a", [Column("name", "x")]),
        maker.change(2, "tasks", "t", [Column("list", "a")]),
      ], head: 2)
    try await replica.thread.run { file in
      _ = try file.apply(last: page.body, try PageReader.head(of: page.body))
    }
    #expect(try await counts.next() == 1)
  }

  @Test("a query of one row is not run again for other rows, written here or pulled")
  func otherRows() async throws {
    struct Result: Sendable { let number: Int }
    let replica = try await open()
    try await replica.track("lists", "tasks")
    try await add(replica, "INSERT INTO lists VALUES ('a', 'x')")
    let (runs, rounds) = (Runs(), Runs())
    let lists = Table<RecordColumns>("lists")
    var results = replica.observe { database in
      _ = try lists.find("a", in: database)
      return Result(number: runs.add())
    }.makeAsyncIterator()
    var others = replica.observe { database in
      _ = try database.query("SELECT * FROM lists WHERE id = 'a'")
      return Result(number: rounds.add())
    }.makeAsyncIterator()
    #expect(try await results.next()?.number == 1)
    _ = try await others.next()
    for number in 1...10 {
      try await add(replica, "REPLACE INTO lists VALUES ('b', 'y\(number)')")
      _ = try await others.next()
    }
    let maker = PageMaker()
    let page = maker.page([maker.change(1, "lists", "c", [Column("name", "x")])], head: 1)
    try await replica.thread.run { file in
      _ = try file.apply(last: page.body, try PageReader.head(of: page.body))
    }
    _ = try await others.next()
    try await add(replica, "UPDATE lists SET name = 'z' WHERE id = 'a'")
    #expect(try await results.next()?.number == 2)
    #expect(rounds.add() > 3)
  }

  @Test("a write of another process is noticed")
  func otherProcess() async throws {
    let replica = try await open()
    var counts = replica.observe(Self.count("other")).makeAsyncIterator()
    #expect(try await counts.next() == 0)
    let path = directory.file("replica.db").path
    try SQLiteConnection(path: path).execute("INSERT INTO other VALUES ('x')")
    #expect(try await counts.next() == 1)
  }

  @Test("a query that fails ends the stream with its error, and no listener stays")
  func failing() async throws {
    let replica = try await open()
    await #expect(throws: DatabaseError.self) {
      for try await _ in replica.observe(Self.count("missing")) {}
    }
    try await eventually("no listener") { !replica.thread.changes.hasListeners }
    var counts: AsyncThrowingStream<Int64, any Error>.AsyncIterator? =
      replica.observe(Self.count("lists")).makeAsyncIterator()
    #expect(try await counts?.next() == 0)
    #expect(replica.thread.changes.hasListeners)
    counts = nil
    try await eventually("no listener") { !replica.thread.changes.hasListeners }
  }

  @Test("a burst of commits ends with the newest result, in few runs")
  func burst() async throws {
    let replica = try await open()
    let results = replica.observe(Self.count("lists"))
    let reader = Task {
      var seen: [Int64] = []
      for try await count in results {
        seen.append(count)
        if count == 2_000 { break }
      }
      return seen
    }
    _ = try await replica.writeInBulk { writer in
      for number in 0..<2_000 {
        _ = try writer.transaction { try $0.execute("INSERT INTO lists VALUES ('\(number)', 'x')") }
      }
    }
    let seen = try await reader.value
    #expect(seen.last == 2_000)
    #expect(seen == seen.sorted())
  }

  @Test("an object for user interfaces has the newest result")
  @MainActor
  func liveQuery() async throws {
    let replica = try await open()
    let query = LiveQuery(replica.observe(Self.count("lists")))
    try await eventually("no list") { query.value == 0 }
    try await add(replica, "INSERT INTO lists VALUES ('a', 'x')")
    try await eventually("one list") { query.value == 1 }
    let broken = LiveQuery(replica.observe(Self.count("missing")))
    try await eventually("the error") { broken.error != nil }
    #expect(broken.value == nil)
  }
}

/// Counts the runs of a query.
private final class Runs: Sendable {
  private let count = Mutex(0)

  /// Returns the count with the present run.
  func add() -> Int {
    count.withLock { count in
      count += 1
      return count
    }
  }
}
