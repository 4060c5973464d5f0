import FerryLaboratory
import FerryPostgres
import Foundation
import Testing

/// A separate schema in the database of a coordinator of Citus, for the tables of one store.
///
/// FERRY_TEST_CITUS names the database. It has the extension and at least one worker.
package struct CitusSchema {
  package static let variable = "FERRY_TEST_CITUS"
  package static let database = ProcessInfo.processInfo.environment[variable].flatMap {
    $0.isEmpty ? nil : $0
  }

  package let name: String
  /// The database with this schema, and with few shards.
  package let url: String

  package init(_ name: String) throws {
    let database = Self.database ?? ""
    guard var parts = URLComponents(string: database) else {
      throw TestSupportError("\(Self.variable) is not a postgres:// URL")
    }
    self.name = "ferry_test_\(name)"
    let options = "-csearch_path=\(self.name) -ccitus.shard_count=4"
    parts.queryItems = (parts.queryItems ?? []) + [URLQueryItem(name: "options", value: options)]
    url = parts.string ?? ""
    let connection = try PostgresConnection(url: database)
    // An interrupted run has left it.
    try connection.execute("DROP SCHEMA IF EXISTS \(self.name) CASCADE")
    try connection.execute("CREATE SCHEMA \(self.name)")
  }

  /// Returns a worker's place, as the coordinator knows it.
  package static func worker() throws -> (host: String, port: UInt16) {
    let row = try PostgresConnection(url: database ?? "").query(
      .once(
        "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0 ORDER BY nodeid LIMIT 1"))[
        0]
    return (try row.text(0), UInt16(try row.int4(1)))
  }

  package func remove() throws {
    try PostgresConnection(url: Self.database ?? "").execute("DROP SCHEMA \(name) CASCADE")
  }
}
