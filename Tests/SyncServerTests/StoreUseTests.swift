import FerryPostgres
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// A store shows that it is open, so that no command moves its tables meanwhile.
@Suite("An open PostgreSQL store", .hangLimit)
struct StoreUseTests {
  @Test("an open store is found, whatever name its connections have")
  func named() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let connection = try PostgresConnection(url: url)
    #expect(try PostgresDistribution.otherConnections(on: connection) == 0)
    let store = try await PostgresStore(url: url + "?application_name=billing")
    // The listener connects in the background.
    while try PostgresDistribution.otherConnections(on: connection) == 0 {
      try await Task.sleep(for: .milliseconds(2))
    }
    await store.close()
    while try PostgresDistribution.otherConnections(on: connection) > 0 {
      try await Task.sleep(for: .milliseconds(2))
    }
  }
}
