import Ferry
import FerryTestSupport
import Testing

/// A server, and two devices of which the first reaches it through a proxy.
struct Pair: Sendable {
  let server: Server
  let proxy: TCPProxy
  let one: Device
  let two: Device

  static func make(
    _ kind: StoreKind = .embedded, schema: String = Device.notes,
    tracking tables: [String] = ["notes"], serving options: [String] = []
  ) async throws -> Pair {
    let server = try await Server.start(kind, options)
    let proxy = try TCPProxy(to: server.port)
    return Pair(
      server: server, proxy: proxy,
      one: try await .joined(proxy.url, schema: schema, tracking: tables),
      two: try await .joined(server.url, schema: schema, tracking: tables))
  }
}

/// Rows of incompressible text in one transaction.
enum Sample {
  /// Inserts `count` notes named `prefix-NUMBER`.
  static func notes(_ count: Int, _ prefix: String) -> String {
    """
    WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < \(count))
    INSERT INTO notes SELECT '\(prefix)-' || printf('%05d', i), hex(randomblob(60)), i FROM k
    """
  }
}

/// Syncs devices until each has the others' changes. Then checks that they have the same rows, that
/// nothing is left over, and that the server's history has exactly `operations`.
func expectSettled(
  _ devices: [Device], _ server: Server, operations: Int64,
  tables: [String] = ["notes"], sourceLocation: SourceLocation = #_sourceLocation
) async throws {
  for device in devices { try await device.exchange(sourceLocation: sourceLocation) }
  for device in devices { try await device.exchange(sourceLocation: sourceLocation) }
  #expect(try await server.head() == operations, sourceLocation: sourceLocation)
  try await expectEqual(devices, tables: tables, sourceLocation: sourceLocation)
  for device in devices {
    let status = try await device.status()
    #expect(status.pending == 0, sourceLocation: sourceLocation)
    #expect(status.buffered == 0, sourceLocation: sourceLocation)
    #expect(status.toApply == 0, sourceLocation: sourceLocation)
    #expect(status.cursor?.applied == status.head, sourceLocation: sourceLocation)
  }
}

/// Checks that devices have the same rows.
func expectEqual(
  _ devices: [Device], tables: [String] = ["notes"],
  sourceLocation: SourceLocation = #_sourceLocation
) async throws {
  let first = try #require(devices.first)
  for table in tables {
    let query = "SELECT * FROM \(table) ORDER BY 1"
    let rows = try await first.rows(query)
    for device in devices.dropFirst() {
      let others = try await device.rows(query)
      #expect(others.count == rows.count, "\(table)", sourceLocation: sourceLocation)
      #expect(others == rows, "\(table)", sourceLocation: sourceLocation)
    }
  }
}
