import FerryPostgres
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// A store shows that it is open, so no command moves the tables meanwhile.
@Suite("An open PostgreSQL store", .hangLimit)
struct StoreUseTests {
  @Test("an open store is found, whatever name its connections have")
  func named() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let connection = try PostgresConnection(url: url)
    #expect(try PostgresDistribution.otherConnections(on: connection) == 0)
    let store = try await PostgresStore(url: url + "?application_name=billing")
    // The listener connects in the background.
    try await eventually("a connection of the store") {
      try PostgresDistribution.otherConnections(on: connection) > 0
    }
    await store.close()
    try await eventually("its connections to end") {
      try PostgresDistribution.otherConnections(on: connection) == 0
    }
  }
}
