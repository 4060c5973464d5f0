import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

/// Statements and tables distributable by Citus, checked without Citus.
@Suite("A distributable store", .hangLimit)
struct DistributableStatementTests {
  private static let rule = SpaceRule(columns: PostgresDistribution.columns)

  /// Statements over all spaces. They run on every worker.
  private static let acrossSpaces: Set = [
    "heads", "spaces", "inspect_spaces", "mission_blob", "mission_blob_any",
    "mission_blob_member",
    "mission_blobs_needed", "mission_blobs_needed_anywhere", "mission_blobs_end",
  ]

  @Test("each statement compares each of its tables with the space")
  func statements() async throws {
    var statements = try await Self.statementsOfContracts()
    let written = try Self.statementsInSources()
    let unseen = written.filter { $0.value == nil && statements[$0.key] == nil }.keys.sorted()
    #expect(unseen == [], "no contract runs them, and their text has parts")
    for case (let name, let sql?) in written { statements[name] = sql }
    for (name, sql) in statements.sorted(by: { $0.key < $1.key }) {
      let violations = Self.rule.violations(in: sql)
      if Self.acrossSpaces.contains(name) {
        #expect(!violations.isEmpty, "\(name) is of one space")
      } else {
        #expect(violations.isEmpty, "\(name): \(sql)")
      }
    }
  }

  @Test(
    "a reference that is not compared with the space is found",
    arguments: [
      ("SELECT state FROM records WHERE space = $1 AND tbl = $2", []),
      ("SELECT state FROM records WHERE tbl = $2", ["records"]),
      ("SELECT state FROM records WHERE space + 0 = $1", ["records"]),
      ("SELECT o.id FROM spaces AS s JOIN operations AS o ON o.space = s.id WHERE s.id = $1", []),
      (
        "SELECT o.id FROM spaces AS s LEFT JOIN operations AS o ON o.space = $1 WHERE s.id = $1",
        ["operations"]
      ),
      (
        "SELECT (SELECT count(*) FROM buffered AS b WHERE b.space = d.space) FROM devices AS d "
          + "WHERE d.space = $1", ["buffered"]
      ),
      (
        "DELETE FROM records WHERE ctid = ANY(ARRAY(SELECT ctid FROM records WHERE space = $1))",
        ["records"]
      ),
      ("INSERT INTO notices(space, device) VALUES ($1, $2)", []),
      (
        "INSERT INTO notices(space, device) SELECT s.id, u.* FROM spaces AS s "
          + "CROSS JOIN unnest($2::uuid[]) AS u WHERE s.id = $1", []
      ),
      (
        "INSERT INTO notices(space, device) SELECT $1, * FROM unnest($2::uuid[])", ["notices"]
      ),
      ("INSERT INTO notices(device, space) VALUES ($1, $2)", ["notices"]),
      ("UPDATE devices SET name = $2 FROM gone WHERE devices.space = $1", []),
      ("UPDATE devices SET space = $1 WHERE device = $2", ["devices"]),
      ("SELECT 1 FROM meta WHERE key = $1", []),
    ] as [(String, [String])])
  func rule(sql: String, violations: [String]) {
    #expect(Self.rule.violations(in: sql) == violations)
  }

  @Test("each table is distributed by the space or copied to each node, and has no trigger")
  func tables() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    await (try await PostgresStore(url: url)).close()
    let connection = try PostgresConnection(url: url)
    let tables = try connection.query(
      .once("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    ).map { try $0.text(0) }
    let known = PostgresDistribution.columns.keys + PostgresDistribution.copied
    #expect(tables == known.sorted())
    #expect(try connection.query(.once("SELECT tgname::text FROM pg_trigger")).isEmpty)
    // A worker can keep a key unique only within a space.
    let keys = try connection.query(
      .once(
        """
        SELECT c.relname::text, a.attname::text FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indrelid
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
        WHERE i.indisunique AND c.relnamespace = 'public'::regnamespace
        """))
    for key in keys {
      let (table, first) = (try key.text(0), try key.text(1))
      guard let column = PostgresDistribution.columns[table] else { continue }
      #expect(first == column, "a key of \(table)")
    }
  }

  /// Returns the prepared statements of all contracts, from a server's log of statements.
  private static func statementsOfContracts() async throws -> [String: String] {
    let cluster = try PostgresCluster()
    let administration = try cluster.createDatabase()
    try PostgresConnection(url: administration).execute(
      "ALTER SYSTEM SET log_parameter_max_length = 0")
    try PostgresConnection(url: administration).execute("ALTER SYSTEM SET log_statement = 'all'")
    try cluster.restart()
    for contract in StoreContract.all {
      let url = try cluster.createDatabase()
      try await contract.check(
        StoreUnderTest(isShared: true) { limits, quotas in
          try await PostgresStore(PostgresAddresses(url), limits: limits, quotas: quotas)
        })
    }
    let directory = try #require(cluster.directory)
    let log = try String(contentsOfFile: "\(directory)/log", encoding: .utf8)
    var statements: [String: String] = [:]
    var name: String?
    for line in log.split(separator: "\n") {
      // The further lines of a statement begin with a tab.
      if line.hasPrefix("\t") {
        if let name { statements[name]?.append("\n\(line.dropFirst())") }
        continue
      }
      name = nil
      guard let found = line.firstMatch(of: /LOG:  execute (\w+): (.*)/) else { continue }
      guard statements[String(found.1)] == nil else { continue }
      name = String(found.1)
      statements[String(found.1)] = String(found.2)
    }
    return statements
  }

  /// Returns the statements in the sources of the store by their names; `nil` for those whose text
  /// has parts.
  private static func statementsInSources() throws -> [String: String?] {
    let sources = Project.file("Server/Sync/Store")
    let files = FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)
    let statement =
      /(?:Postgres|Plain)Statement\(\s*"(\w+)",\s*(?:"""(.*?)"""\)|"([^"]*)"\))?/
      .dotMatchesNewlines()
    var statements: [String: String?] = [:]
    for case let file as URL in try #require(files) where file.pathExtension == "swift" {
      let text = try String(contentsOf: file, encoding: .utf8)
      for found in text.matches(of: statement) {
        let sql = (found.2 ?? found.3).map { String($0) }
        statements[String(found.1)] = .some(sql.flatMap { $0.contains("\\(") ? nil : $0 })
      }
    }
    return statements
  }
}
