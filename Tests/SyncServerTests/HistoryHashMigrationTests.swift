import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerryStoreContracts
import FerrySyncServer
import FerryTestSupport
import Testing

/// Stores whose history is older than its history hash.
@Suite("Histories from before history hashes", .hangLimit)
struct HistoryHashMigrationTests {
  /// Takes a store's data back to the format before, with the steps that came after it.
  private static let backwards = """
    ALTER TABLE spaces DROP COLUMN history_hash;
    ALTER TABLE operations DROP COLUMN history_hash;
    ALTER TABLE spaces DROP COLUMN timeline;
    DROP TABLE timelines;
    DROP TABLE missions;
    DROP TABLE mission_blobs;
    DROP TABLE usage;
    ALTER TABLE devices DROP COLUMN principal;
    ALTER TABLE devices DROP COLUMN trimmed;
    DROP INDEX spaces_by_creator;
    ALTER TABLE spaces DROP COLUMN creator;
    DROP TABLE access_tokens;
    DROP TABLE token_secrets;
    DROP TABLE audit;
    CREATE TABLE tokens(
      hash bytea PRIMARY KEY, space text NOT NULL, role text NOT NULL, created_at bigint NOT NULL
    );
    """

  @Test("SQLite: old places are known by their operations, new ones by the hash as well")
  func embedded() async throws {
    let directory = try TemporaryDirectory()
    let path = directory.url.path
    try await check({ try await SQLiteStore(directory: path) }) {
      let connection = try SQLiteConnection(path: path + "/ferry.sqlite")
      let version = try connection.prepare("PRAGMA user_version").first { $0.int64(0) } ?? 0
      try connection.execute(Self.backwards + "PRAGMA user_version=\(version - 5)")
    }
  }

  @Test("PostgreSQL: old places are known by their operations, new ones by the hash as well")
  func postgres() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    try await check({ try await PostgresStore(url: url) }) {
      let pool = try PostgresPool(url: url, connections: 1)
      try await pool.run {
        try $0.execute(Self.backwards + "UPDATE ferry_schema SET version = version - 5")
      }
      await pool.close()
    }
  }

  private func check(
    _ open: () async throws -> any SyncStore, goBack: () async throws -> Void
  ) async throws {
    var store = try await open()
    let space = try await store.createSpace(.known("before"))
    let packet = Packet.serviceSample(1, operations: 4)
    _ = try await store.ingest([IncomingPacket(packet, byteCount: 1)], into: space.id, now: 5)
    await store.close()
    try await goBack()
    store = try await open()
    let tail = try #require(packet.tail)
    let old = Cursor.Anchor(head: 4, operation: tail)
    #expect(try await problem(old, store, space) == nil)
    let given = try #require(try await newest(store, space))
    #expect(given == Cursor.Anchor(head: 4, operation: tail, historyHash: HistoryHash.empty))
    #expect(try await problem(given, store, space) == nil)
    let other = packet.operations[0].id
    #expect(
      try await problem(Cursor.Anchor(head: 4, operation: other), store, space) == .historyLost)

    let next = Packet.serviceSample(2, operations: 1)
    _ = try await store.ingest([IncomingPacket(next, byteCount: 1)], into: space.id, now: 6)
    let id = next.operations[0].id
    let now = try #require(try await newest(store, space))
    let historyHash = try #require(now.historyHash)
    #expect(historyHash != HistoryHash.empty)
    let anchor = Cursor.Anchor(head: 5, operation: id, historyHash: historyHash)
    #expect(now.timeline != nil)
    #expect(
      now == Cursor.Anchor(head: 5, operation: id, historyHash: historyHash, timeline: now.timeline)
    )
    #expect(try await problem(anchor, store, space) == nil)
    #expect(try await problem(Cursor.Anchor(head: 5, operation: id), store, space) == nil)
    let wrong = Cursor.Anchor(head: 5, operation: id, historyHash: historyHash ^ 1)
    #expect(try await problem(wrong, store, space) == .historyLost)
    await store.close()
  }

  private func newest(_ store: any SyncStore, _ space: SpaceSummary) async throws -> Cursor.Anchor?
  {
    let request = PullRequest(cursor: nil, limit: 9, byteLimit: 9_999, device: nil)
    let page = try await store.changes(in: space.id, request, now: 5).get()
    return try PageReader.head(of: page).cursor.anchor
  }

  private func problem(
    _ anchor: Cursor.Anchor, _ store: any SyncStore, _ space: SpaceSummary
  ) async throws -> ProblemCode? {
    let cursor = Cursor(epoch: space.epoch, applied: anchor.head, anchor: anchor)
    let request = PullRequest(cursor: cursor, limit: 9, byteLimit: 9_999, device: nil)
    let page = try await store.changes(in: space.id, request, now: 5)
    if case .failure(let problem) = page { return problem.code }
    return nil
  }
}
