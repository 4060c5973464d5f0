import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerrySyncServer
import FerryTestSupport
import Testing

/// Tombstones may be pruned at any time; the sums never keep the part of such a record.
@Suite("Digests of records that are removed", .hangLimit)
struct DigestLossTests {
  @Test("SQLite: sums are rebuilt if a record is pruned before its delete was folded")
  func embedded() async throws {
    let directory = try TemporaryDirectory()
    let store = try await SQLiteStore(directory: directory.url.path)
    try await check(store) { sql in
      try SQLiteConnection(path: directory.url.path + "/ferry.sqlite").execute(sql)
    }
    await store.close()
  }

  @Test("PostgreSQL: sums are rebuilt if a record is pruned before its delete was folded")
  func postgres() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let store = try await PostgresStore(url: url)
    let pool = try PostgresPool(url: url, connections: 1)
    try await check(store) { sql in
      try await pool.run { try $0.execute(sql) }
    }
    await pool.close()
    await store.close()
  }

  private func check(
    _ store: any SyncStore, _ execute: (String) async throws -> Void
  ) async throws {
    let space = try await store.createSpace(.known("loss"))
    let packet = Packet.serviceSample(1, operations: 40)
    _ = try await store.ingest([IncomingPacket(packet, byteCount: 1)], into: space.id, now: 5)
    #expect(try await store.foldDigests(in: space.id) == 40)
    let gone = packet.operations.prefix(10).map(\.key.record)
    let deletes = gone.enumerated().map { index, record in
      let time = HybridTimestamp(
        milliseconds: ServiceClockDouble.wall + 1, counter: UInt16(index))
      return SyncOperation(
        id: OperationID(UniqueID(timestamp: time, random: 99)),
        key: RecordKey(table: "tasks", record: record), kind: .delete, time: time)
    }
    let next = Packet(device: packet.device, dependency: packet.tail, operations: deletes)
    _ = try await store.ingest([IncomingPacket(next, byteCount: 1)], into: space.id, now: 5)
    try await execute("UPDATE spaces SET retention_horizon = 45")
    #expect(try await prunedTombstones(store, space) == 5)
    #expect(try await store.foldDigests(in: space.id) == 50)
    let tables = try await self.tables(store, space, at: 50)
    let left = packet.operations.dropFirst(10)
    #expect(tables.map(\.records) == [left.count])
    #expect(tables.map(\.digest) == [digest(Array(left))])
    // Folded tombstones may go without a trace.
    try await execute("UPDATE spaces SET retention_horizon = 50")
    #expect(try await prunedTombstones(store, space) == 5)
    #expect(try await self.tables(store, space, at: 50) == tables)
  }

  private func prunedTombstones(
    _ store: any SyncStore, _ space: SpaceSummary
  ) async throws -> Int? {
    let slice = PruneSlice(bufferedBefore: 0, rows: 1_000)
    guard case .pruned(let rows, _, _) = try await store.prune(slice, of: space.id) else {
      return nil
    }
    return rows.tombstones
  }

  private func tables(
    _ store: any SyncStore, _ space: SpaceSummary, at applied: SequenceNumber
  ) async throws -> [DigestAnswer.TableDigest] {
    let query = DigestQuery(cursor: Cursor(epoch: space.epoch, applied: applied))
    let answer = try await store.digests(in: space.id, query).get()
    guard case .tables(let tables) = answer.content else { return [] }
    return tables
  }

  private func digest(_ operations: [SyncOperation]) -> Digest {
    var hasher = RecordHasher()
    var sum = Digest.zero
    for operation in operations { sum += hasher.digest(of: operation.key, operation.columns) }
    return sum
  }
}
