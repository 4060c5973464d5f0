import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

/// The remains of many updates of few records.
@Suite("The size of a store", .serialized, .hangLimit)
struct StoreSizeTests {
  static let records = 500
  static let text = String(repeating: "a line of text ", count: 20)

  /// Writes each record so many times over, then prunes everything.
  static func write(_ store: any SyncStore, times: Int) async throws {
    let space = try await store.createSpace(try #require(SpaceName("size")))
    var maker = PacketMaker(1)
    for number in 0..<times {
      let operations = (0..<records).map { index in
        maker.operation(
          number == 0 ? .insert : .update, "r\(index)",
          [Column("n", .integer(Int64(number))), Column("text", .text(text))])
      }
      let packet = IncomingPacket(maker.packet(operations), byteCount: 9)
      _ = try await store.ingest([packet], into: space.id, now: 1)
    }
    let harness = PrunerTests.Harness()
    let pruner = harness.pruner(store, rows: 2_000)
    _ = try await pruner.prune(space, keeping: Retention(milliseconds: 0))
    // Autovacuum may have a table for a moment.
    try await eventually("the tables to be free") { try await pruner.reclaim() }
    let page = try await store.changes(
      in: space.id, PullRequest(cursor: nil, limit: 10_000, byteLimit: 9 << 20, device: nil),
      now: 1)
    let head = try PageReader.head(of: try page.get())
    #expect(head.count == records)
  }

  @Test("SQLite: 40,000 updates of 500 records use at most twice the size of the records")
  func embedded() async throws {
    func size(times: Int) async throws -> Int {
      let directory = try TemporaryDirectory()
      let store = try await SQLiteStore(directory: directory.url.path)
      try await Self.write(store, times: times)
      await store.close()
      let file = directory.file("ferry.sqlite").path
      let size = try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int
      return try #require(size)
    }
    let (once, often) = (try await size(times: 1), try await size(times: 80))
    // A file is cut once more than 1,000 pages are free.
    #expect(often <= 2 * once + 1_000 * 4_096, "\(often) bytes, \(once) with one write each")
  }

  @Test("PostgreSQL: 40,000 updates of 500 records use at most twice the size of the records")
  func postgres() async throws {
    func size(times: Int) async throws -> Int64 {
      let url = try PostgresCluster.shared().createDatabase()
      let store = try await PostgresStore(url: url)
      try await Self.write(store, times: times)
      await store.close()
      let pool = try PostgresPool(url: url, connections: 1)
      let size = try await pool.run { connection in
        try connection.query(
          .once(
            """
            SELECT (pg_total_relation_size('operations') + pg_total_relation_size('records')
              + pg_total_relation_size('buffered'))::bigint
            """))[0].int8(0)
      }
      await pool.close()
      return size
    }
    let (once, often) = (try await size(times: 1), try await size(times: 80))
    #expect(often <= 2 * once + 1 << 20, "\(often) bytes, \(once) with one write each")
  }
}
