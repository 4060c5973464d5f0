import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// Batches decided without looking for entries that are most likely absent.
@Suite(.hangLimit)
struct IngestLookUpsTests {
  @Test("a quick decision equals the thorough one, or violates a unique key")
  func equal() {
    // ``IngestSpace`` compares them.
    let quick = (0..<40).map { Self.busySpace(UInt64($0)).quickDecisions }
    #expect(quick.allSatisfy { $0 > 0 } && quick.reduce(0, +) > 200)
  }

  /// Returns a space after packets of four devices. They lose answers, write the same records, and
  /// send packets again, late, under another device and together.
  private static func busySpace(_ seed: UInt64) -> IngestSpace {
    var random = SeededGenerator(seed: seed)
    var space = IngestSpace()
    var makers = (0..<4).map { PacketMaker(UInt64($0) + 1) }
    var sent: [Packet] = []
    for _ in 0..<80 {
      var batch: [Packet] = []
      for _ in 0..<(1 + random.below(3)) {
        let device = random.below(4)
        let again = sent.isEmpty ? nil : sent[random.below(sent.count)]
        if let again, random.below(6) == 0 {
          var copy = again
          // A copy of a device has the device's operations under another identity.
          if random.below(2) == 0 {
            (copy.device, copy.dependency) = (makers[device].device, makers[device].tail)
          }
          batch.append(copy)
          continue
        }
        let packet = makers[device].packet(
          (0..<(1 + random.below(3))).map { _ in
            let kind: OperationKind = [.insert, .insert, .update, .delete][random.below(4)]
            let columns = kind == .delete ? [] : [Column("c\(random.below(2))", "x")]
            return makers[device].operation(kind, "r\(random.below(40))", columns)
          }, continues: random.below(8) == 0)
        sent.append(packet)
        if random.below(8) > 0 { batch.append(packet) }
      }
      _ = space.send(batch)
    }
    return space
  }

  @Test("a mistaken batch begins again once, observed as before, and its device is remembered")
  func mistaken() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let store = try await PostgresStore(url: url)
    let space = try await store.createSpace(try #require(SpaceName("quick")))
    await store.close()
    let now: Int64 = 1_800_000_000_000
    let mistaken = MistakenDevices()
    let ingest = PostgresIngest(
      space: space.id, limits: .standard, quotas: .standard, now: now, schemas: SchemaCache(),
      timelines: OwnTimelines(), mistaken: mistaken, room: .sliced)
    let connection = try PostgresConnection(url: url)
    /// Returns the statements of each round trip, and the states of the failed ones.
    func send(_ packet: Packet) throws -> (trips: [[String]], faults: [String?]) {
      var trips: [[String]] = []
      var faults: [String?] = []
      connection.observer = PostgresObserver(applicationName: "test") { statements in
        trips.append(statements)
        return { if let error = $0 { faults.append(error.sqlState) } }
      }
      defer { connection.observer = nil }
      let attempt = try ingest.run(
        [IncomingPacket(packet, byteCount: 1)], BatchMatches(), on: connection)
      guard case .done(_, let batch) = attempt else {
        Issue.record("the batch asks for matches")
        return (trips, faults)
      }
      #expect(batch.results.map(\.word) == ["applied"])
      return (trips, faults)
    }
    let id = UniqueID(timestamp: HybridTimestamp(milliseconds: now), random: 1).description
    var (first, second) = (PacketMaker(1), PacketMaker(2))
    // The names of a space's tables are loaded for the first record of a table only.
    let new = try send(first.packet([first.operation(.insert, "first")]))
    #expect(new.trips.count { $0 == ["tables"] } == 1)
    let quick = try send(first.packet([first.operation(.insert, id)]))
    #expect(quick.trips.count == 2 && quick.faults.isEmpty)
    #expect(!quick.trips.joined().contains("known"))
    let failed = try send(second.packet([second.operation(.insert, id)]))
    #expect(failed.faults == ["23505"])
    #expect(failed.trips.count == 4 && failed.trips[2].contains("known"))
    let remembered = try send(second.packet([second.operation(.insert, id)]))
    #expect(remembered.trips.count == 2 && remembered.faults.isEmpty)
    #expect(remembered.trips[0].contains("known"))
  }

  private static func insert(_ record: String, at milliseconds: Int64) -> SyncOperation {
    SyncOperation(
      id: OperationID(UniqueID(high: 7, low: 7)),
      key: RecordKey(table: "t", record: Name(record)), kind: .insert,
      time: HybridTimestamp(milliseconds: milliseconds))
  }

  @Test("a record is taken for new if its identifier was made with its insert")
  func fresh() {
    let now: Int64 = 1_800_000_000_000
    let id = UniqueID(timestamp: HybridTimestamp(milliseconds: now), random: 1).description
    for (distance, isFresh) in [
      (Int64(0), true), (60_000, true), (-60_000, true), (60_001, false), (-60_001, false),
    ] {
      #expect(IngestLookUps.isFresh(Self.insert(id, at: now + distance)) == isFresh)
    }
    #expect(!IngestLookUps.isFresh(Self.insert(id.uppercased(), at: now)))
    #expect(!IngestLookUps.isFresh(Self.insert("home", at: now)))
    let numbered = UniqueID(milliseconds: now, random: 1, number: 10_248).description
    #expect(IngestLookUps.isFresh(Self.insert(numbered, at: now)))
    // Version 4 (RFC 9562 §5.4) has no time.
    let other = id.prefix(14) + "4" + id.dropFirst(15)
    #expect(!IngestLookUps.isFresh(Self.insert(String(other), at: now)))
    var update = Self.insert(id, at: now)
    update.kind = .update
    #expect(!IngestLookUps.isFresh(update))
    #expect(!IngestLookUps.isFresh(Self.insert("ffffffff-ffff-7fff-bfff-ffffffffffff", at: 0)))
  }

  @Test("a quick look-up asks for no operation, and for records that may be there")
  func keys() {
    let now: Int64 = 1_800_000_000_000
    let id = UniqueID(timestamp: HybridTimestamp(milliseconds: now), random: 1).description
    var (maker, other) = (PacketMaker(1), PacketMaker(2))
    let packets = [
      Packet(
        device: maker.device, dependency: other.operation().id,
        operations: [
          Self.insert(id, at: now), Self.insert("home", at: now), Self.insert("home", at: now),
        ]),
      maker.packet("a"),
    ]
    let quick = IngestLookUps(packets, isThorough: false)
    #expect(quick.operations.isEmpty)
    #expect(quick.records.map(\.record) == ["home", "a"])
    let thorough = IngestLookUps(packets, isThorough: true)
    #expect(thorough.operations.count == 5)
    #expect(thorough.records.map(\.record) == [Name(id), "home", "a"])
  }
}
