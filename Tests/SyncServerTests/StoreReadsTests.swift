import FerryPostgres
import FerryProtocol
import FerrySyncServer
import FerryTestSupport
import Testing

/// The reads of a commit must not grow with the space, also before PostgreSQL has any statistics.
@Suite("Reads of the PostgreSQL store", .hangLimit)
struct StoreReadsTests {
  @Test("look-ups fetch about as many rows as a packet names, in a space of any size")
  func lookUps() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let store = try await PostgresStore(url: url)
    let space = try await store.createSpace(try #require(SpaceName("reads")))
    let device = DeviceID(UniqueID(high: 0x7000, low: 1 << 63))
    let packets = 120
    let perPacket = 100
    var tail: OperationID?
    var clock = HybridClock()
    for number in 0..<packets {
      // Half of each packet is new, half touches records of the first packets.
      let operations = (0..<perPacket).map { index in
        let time = clock.tick(wall: 1)
        let isNew = number == 0 || index % 2 == 0
        return SyncOperation(
          id: OperationID(UniqueID(timestamp: time, random: 1)),
          key: RecordKey(table: "t", record: isNew ? "r\(number)-\(index)" : "r0-\(index)"),
          kind: isNew ? .insert : .update, time: time, columns: [Column("v", 1)])
      }
      let packet = Packet(device: device, dependency: tail, operations: operations)
      tail = packet.tail
      _ = try await store.ingest([IncomingPacket(packet, byteCount: 1)], into: space.id, now: 5)
    }
    await store.close()
    let (fetched, scanned) = try await Self.reads(of: ["records", "operations"], in: url)
    #expect(scanned == 0)
    #expect(fetched < Int64(packets * perPacket * 4))
  }

  @Test("a pull reads only the asking device's notices after its cursor")
  func notices() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let store = try await PostgresStore(url: url)
    let space = try await store.createSpace(try #require(SpaceName("reads")))
    let devices = (0..<2).map { DeviceID(UniqueID(high: 0x7000, low: 1 << 63 | $0)) }
    var tails: [OperationID?] = [nil, nil]
    var clock = HybridClock()
    // Each overwrites the other's last write, without having seen it.
    for number in 0..<60 {
      let operations = (0..<10).map { index in
        let time = clock.tick(wall: 1)
        return SyncOperation(
          id: OperationID(UniqueID(timestamp: time, random: 1)),
          key: RecordKey(table: "t", record: "r\(index)"), kind: .update, time: time,
          columns: [Column("v", .integer(Int64(number)))])
      }
      let author = number % 2
      let packet = Packet(
        device: devices[author], dependency: tails[author], operations: operations)
      tails[author] = packet.tail
      _ = try await store.ingest([IncomingPacket(packet, byteCount: 1)], into: space.id, now: 5)
    }
    for received in [Int64](repeating: 590, count: 20) {
      let cursor = Cursor(epoch: space.epoch, applied: received)
      let request = PullRequest(
        cursor: cursor, limit: 100, byteLimit: 1 << 20, device: devices[0])
      let page = try await store.changes(in: space.id, request, now: 5).get()
      #expect(try PageReader.notices(of: page, limits: .standard).count == 10)
    }
    await store.close()
    let (fetched, scanned) = try await Self.reads(of: ["notices"], in: url)
    #expect(scanned == 0)
    #expect(fetched <= 20 * 11, "10 notices a page, and the newest one")
  }

  @Test("no view of an administrator scans a table, and a list reads about as many rows as it has")
  func views() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let store = try await PostgresStore(url: url)
    let space = try await store.createSpace(try #require(SpaceName("reads")))
    try await Self.fill(space.id, of: store)
    await store.close()
    let tables = [
      "records", "operations", "notices", "devices", "buffered", "device_sightings",
      "rejections", "space_activity", "spaces", "usage",
    ]
    let before = try await Self.reads(of: tables, in: url)
    let again = try await PostgresStore(url: url)
    for _ in 0..<10 {
      _ = try await SpaceInspection(again).overviews(after: "", limit: 10, now: 100_000)
      _ = try await DeviceInspection(again).devices(in: space.id, after: nil, limit: 10)
      _ = try await DeviceInspection(again).rejections(in: space.id, before: nil, limit: 10)
      _ = try await SpaceInspection(again).activity(in: space.id, by: .hour, since: 0)
      _ = try await SpaceInspection(again).tableNames(in: space.id, after: nil, limit: 10)
      let records = try await RecordInspection(again).listedRecords(
        of: "t5", in: space.id, after: "r500", limit: 10, characters: 1 << 20)
      #expect(records.count == 10)
      let part = try await RecordInspection(again).history(
        of: RecordKey(table: "t5", record: "r10"), in: space.id, within: 3_950...4_000,
        limit: 10, characters: 1 << 20)
      #expect(part.entries.count == 1)
      _ = try await RecordInspection(again).conflicts(
        in: space.id, before: nil, limit: 10, characters: 1 << 20)
    }
    await again.close()
    let after = try await Self.reads(of: tables, in: url, atLeast: before.fetched + 1)
    // A store reads the head of the one space when it opens.
    #expect(after.scanned <= before.scanned + 1)
    #expect(after.fetched - before.fetched < 10 * 300)
  }

  /// Writes 20 tables of 200 records each, by 200 devices.
  private static func fill(_ space: Int64, of store: PostgresStore) async throws {
    var clock = HybridClock()
    var observed = Observations()
    for author in 0..<UInt64(200) {
      let device = DeviceID(UniqueID(high: 0x7000, low: 1 << 63 | author))
      let operations = (0..<20).map { index in
        let time = clock.tick(wall: 1)
        return SyncOperation(
          id: OperationID(UniqueID(timestamp: time, random: author)),
          key: RecordKey(table: "t\(index)", record: author == 199 ? "r10" : "r\(author * 5)"),
          kind: .insert, time: time, columns: [Column("v", 1)])
      }
      let packet = Packet(device: device, dependency: nil, operations: operations)
      _ = try await store.ingest([IncomingPacket(packet, byteCount: 1)], into: space, now: 5)
      observed.sightings.append(
        DeviceSighting(
          space: space, device: device, principal: .anonymous, at: 5, reached: 1, client: nil))
      observed.rejections.append(
        (
          space,
          Rejection(
            subject: "s\(author)", firstAt: 5, lastAt: 5, code: "c", detail: "d",
            principal: "p", device: device)
        ))
    }
    observed.activity = [(space, ActivityCount(at: 5, operations: 4_000))]
    try await store.store(observed, now: 5)
  }

  /// Returns rows fetched by index and rows scanned, of all ended connections.
  private static func reads(
    of tables: [String], in url: String, atLeast least: Int64 = 1
  ) async throws -> (fetched: Int64, scanned: Int64) {
    // A backend writes the counts down when it ends, a moment after the connection is closed.
    let pool = try PostgresPool(url: url, connections: 1)
    try await eventually("the other connections to end") {
      try await pool.run { connection in
        try connection.query(
          .once(
            """
            SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
              AND pid <> pg_backend_pid() AND backend_type = 'client backend'
            """))[0].int8(0)
      } == 0
    }
    let counts = try await eventually("\(least) rows to be counted") {
      let (fetched, scanned) = try await pool.run { connection in
        let row = try connection.query(
          .once(
            """
            SELECT sum(idx_tup_fetch)::bigint, sum(seq_tup_read)::bigint
            FROM pg_stat_user_tables WHERE relname = ANY ($1)
            """), [.array(PostgresArray<String>(tables))])[0]
        return (try row.int8(0), try row.int8(1))
      }
      return fetched < least ? nil : (fetched: fetched, scanned: scanned)
    }
    await pool.close()
    return counts
  }
}
