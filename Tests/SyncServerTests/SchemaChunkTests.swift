import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The records loaded at once from PostgreSQL by the check of a schema.
@Suite("Records of a schema check in PostgreSQL", .hangLimit)
struct SchemaChunkTests {
  @Test("records are loaded by their bytes, and a single one however large it is")
  func bytes() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let store = try await PostgresStore(url: url)
    let space = try await store.createSpace(try #require(SpaceName("large"))).id
    let now: Int64 = 1_800_000_000_000
    var maker = PacketMaker(1)
    let text = Value.text(String(repeating: "x", count: 4_000))
    let inserts = (0..<10).map { maker.operation(.insert, "r\($0)", [Column("v", text)]) }
    let packet = IncomingPacket(maker.packet(inserts), byteCount: 100)
    #expect(try await store.ingest([packet], into: space, now: now).head == 10)
    await store.close()
    let connection = try PostgresConnection(url: url)
    func counts(_ bytes: Int) throws -> [Int] {
      var (counts, last) = ([Int](), Name(""))
      while true {
        let records = try connection.records(
          of: "t", after: last, rows: 500, bytes: bytes, in: space)
        guard let end = records.last else { return counts }
        counts.append(records.count)
        last = end.id
      }
    }
    #expect(try counts(8 << 20) == [10])
    #expect(try counts(10_000) == [3, 3, 3, 1])
    #expect(try counts(1) == [Int](repeating: 1, count: 10))
  }
}
