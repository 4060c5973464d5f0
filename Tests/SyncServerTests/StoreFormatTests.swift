import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerrySyncServer
import FerryTestSupport
import Testing

/// The creation of a store's tables, and stores of other versions.
@Suite("The format of a store", .hangLimit)
struct StoreFormatTests {
  /// Expects that opening a store fails, with a reason that names the store's format.
  private func expectRefusal(
    of version: Int, _ open: () async throws(StoreError) -> any SyncStore
  ) async {
    do {
      let store = try await open()
      Issue.record("a store of format \(version) was opened")
      await store.close()
    } catch {
      guard case .failed(let reason) = error else {
        Issue.record("\(error)")
        return
      }
      #expect(reason.contains("its format is \(version), and this version needs format 8"))
    }
  }

  @Test(
    "PostgreSQL: a store of another version is refused, and not changed", arguments: [0, 1, 12])
  func postgres(version: Int) async throws {
    let url = try PostgresCluster.shared().createDatabase()
    await (try await PostgresStore(url: url)).close()
    let connection = try PostgresConnection(url: url)
    try connection.execute("UPDATE ferry_schema SET version = \(version); DROP TABLE meta")
    await expectRefusal(of: version) { () async throws(StoreError) in
      try await PostgresStore(url: url)
    }
    let found = try connection.query(
      .once("SELECT version::bigint, to_regclass('meta') IS NULL FROM ferry_schema"))
    #expect(try found[0].int8(0) == version && found[0].bool(1))
  }

  @Test("SQLite: a store of another version is refused, and not changed", arguments: [1, 12])
  func embedded(version: Int) async throws {
    let directory = try TemporaryDirectory()
    await (try await SQLiteStore(directory: directory.url.path)).close()
    let connection = try SQLiteConnection(path: directory.file("ferry.sqlite").path)
    try connection.execute("PRAGMA user_version=\(version); DROP TABLE meta")
    await expectRefusal(of: version) { () async throws(StoreError) in
      try await SQLiteStore(directory: directory.url.path)
    }
    #expect(try connection.prepare("PRAGMA user_version").first { Int($0.int64(0)) } == version)
    #expect(try !connection.exists("SELECT 1 FROM sqlite_schema WHERE name = 'meta'"))
  }

  /// The tables missing in stores of earlier versions.
  private static let additions = [
    "bundle_counts", "bundle_reports", "device_sightings", "rejections", "space_activity",
  ]

  @Test(
    "PostgreSQL: a table that a store lacks is added, and the others stay", arguments: additions)
  func postgresAddition(table: String) async throws {
    let url = try PostgresCluster.shared().createDatabase()
    await (try await PostgresStore(url: url)).close()
    let connection = try PostgresConnection(url: url)
    let count = PostgresStatement.once(
      "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace")
    let before = try connection.query(count)[0].int8(0)
    try connection.execute(
      "INSERT INTO meta VALUES ('kept', 'yes'); DROP TABLE \(table)")
    await (try await PostgresStore(url: url)).close()
    #expect(try connection.query(count)[0].int8(0) == before)
    #expect(try connection.query(.once("SELECT 1 FROM meta WHERE key = 'kept'")).count == 1)
  }

  @Test("SQLite: a table that a store lacks is added, and the others stay", arguments: additions)
  func embeddedAddition(table: String) async throws {
    let directory = try TemporaryDirectory()
    await (try await SQLiteStore(directory: directory.url.path)).close()
    let connection = try SQLiteConnection(path: directory.file("ferry.sqlite").path)
    func names() throws -> [String] {
      try connection.rows("SELECT name FROM sqlite_schema ORDER BY name") { $0.text(0) }
    }
    let before = try names()
    try connection.execute("INSERT INTO meta VALUES ('kept', 'yes'); DROP TABLE \(table)")
    await (try await SQLiteStore(directory: directory.url.path)).close()
    #expect(try names() == before)
    #expect(try connection.exists("SELECT 1 FROM meta WHERE key = 'kept'"))
  }

  @Test("of several nodes that start at the same time, one creates the tables and the others wait")
  func nodes() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 { group.addTask { await (try await PostgresStore(url: url)).close() } }
      try await group.waitForAll()
    }
    let rows = try PostgresConnection(url: url).query(.once("SELECT version FROM ferry_schema"))
    #expect(rows.count == 1)
  }
}
