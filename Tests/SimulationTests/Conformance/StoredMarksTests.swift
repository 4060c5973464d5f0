import FerryConformance
import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The marks of increments and originals in both stores.
@Suite(.hangLimit)
struct StoredMarksTests {
  private static let now: Int64 = 1_800_000_000_000

  private func operation(
    _ number: UInt64, _ kind: OperationKind, _ columns: [Column], adds: Set<Name> = [],
    originals: [Column] = []
  ) -> SyncOperation {
    let time = HybridTimestamp(milliseconds: Self.now + Int64(number))
    return SyncOperation(
      id: OperationID(UniqueID(timestamp: time, random: number)),
      key: RecordKey(table: "tallies", record: "a"), kind: kind, time: time, columns: columns,
      increments: adds, originals: originals)
  }

  private var packet: IncomingPacket {
    let operations = [
      operation(1, .insert, [Column("votes", 3), Column("body", "one")]),
      operation(
        2, .update, [Column("votes", -1), Column("body", "two")], adds: ["votes"],
        originals: [Column("body", "one")]),
      operation(3, .update, [Column("votes", 2)], adds: ["votes"]),
      operation(4, .delete, []),
    ]
    let device = DeviceID(UniqueID(high: 7, low: 1 << 63))
    return IncomingPacket(
      Packet(device: device, dependency: nil, operations: operations, continues: false),
      byteCount: 100)
  }

  private static let expected = [
    nil, #"{"adds":["votes"],"originals":{"body":"one"}}"#, #"{"adds":["votes"]}"#, nil,
  ]
  private static let query = "SELECT marks FROM operations ORDER BY sequence"

  @Test("the embedded store keeps an operation's increments and original texts")
  func embedded() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("ferry.sqlite").path
    let store = try SQLiteStoreFile(path: path, limits: .standard)
    let name = try #require(SpaceName("demo"))
    let space = try store.createSpace(name, epoch: Epoch(7))
    _ = try store.ingest([packet], into: space.id, now: Self.now)
    let connection = try SQLiteConnection(path: path, mode: .readOnly)
    let kept = try connection.rows(Self.query) { $0.isNull(0) ? nil : $0.text(0) }
    #expect(kept == Self.expected)
    let history = try ServerEvidence.read(connection, space: name).history
    #expect(history.map(\.increments) == [[], ["votes"], ["votes"], []])
  }

  @Test("the PostgreSQL store keeps an operation's increments and original texts")
  func postgres() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let store = try await PostgresStore(url: url)
    let name = try #require(SpaceName("demo"))
    let space = try await store.createSpace(name)
    _ = try await store.ingest([packet], into: space.id, now: Self.now)
    let connection = try PostgresConnection(url: url)
    let kept = try connection.query(.once(Self.query)).map {
      $0.isNull(0) ? nil : try $0.text(0)
    }
    #expect(kept == Self.expected)
    let history = try ServerEvidence.read(connection, space: name).history
    #expect(history.map(\.increments) == [[], ["votes"], ["votes"], []])
    await store.close()
  }
}
