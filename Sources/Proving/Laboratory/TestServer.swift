import FerryPostgres
import FerryProtocol
import Foundation
import Synchronization

/// A server on which databases for tests can be made.
struct TestServer: Sendable {
  /// A URL of a database from which others can be created.
  let administration: String
  /// The server remains after the tests, so their databases must not stay.
  let outlivesTests: Bool

  /// Databases to drop when the process ends: name and administration URL.
  private static let leftovers = Mutex([(name: String, administration: String)]())
  private static let dropAtExit: Void = {
    atexit { TestServer.dropLeftovers() }
  }()
  private static let databaseCount = Mutex(0)

  func createDatabase() throws -> String {
    let number = Self.databaseCount.withLock { count in
      count += 1
      return count
    }
    let random = UInt32.random(in: 0 ..< .max)
    let name = "ferry_test_\(getpid())_\(number)_\(random)"
    guard var url = URLComponents(string: administration) else {
      throw TestSupportError("FERRY_TEST_POSTGRES is not a postgres:// URL")
    }
    let connection = try PostgresConnection(url: administration)
    // text: such a statement runs outside of a pipeline alone
    try connection.execute(
      "CREATE DATABASE \(quoted(Name(name))) ENCODING 'UTF8' TEMPLATE template0")
    if outlivesTests {
      _ = Self.dropAtExit
      Self.leftovers.withLock { $0.append((name, administration)) }
    }
    url.path = "/\(name)"
    guard let text = url.string else { throw TestSupportError("no URL for database \(name)") }
    return text
  }

  private static func dropLeftovers() {
    for (name, administration) in leftovers.withLock({ $0 }) {
      do {
        let connection = try PostgresConnection(url: administration)
        // text: such a statement runs outside of a pipeline alone
        try connection.execute("DROP DATABASE IF EXISTS \(quoted(Name(name))) WITH (FORCE)")
      } catch {
        print("database \(name) could not be dropped: \(error)")
      }
    }
  }
}
