import Dispatch
import FerryPlatform
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncServer

/// Large packets in the embedded store, which has one writer for all spaces.
@Suite("Large packets beside the embedded store's writer", .hangLimit)
struct PreparedIngestTests {
  private let directory: TemporaryDirectory
  private let one: Int64
  private let two: Int64
  private let now: Int64 = 1_800_000_000_000
  private let slice = WriteSlice(rows: 100, bytes: 4_000, matches: 10)
  /// A store's connections share them.
  private let timelines = OwnTimelines()
  private let writing = WriteLock()

  init() async throws {
    directory = try TemporaryDirectory()
    let store = try await SQLiteStore(directory: directory.url.path)
    one = try await store.createSpace(try #require(SpaceName("one"))).id
    two = try await store.createSpace(try #require(SpaceName("two"))).id
    await store.close()
  }

  private func open(slice: WriteSlice? = nil) throws -> SQLiteStoreFile {
    try SQLiteStoreFile(
      path: directory.file(SQLiteStore.fileName).path, limits: .standard, timelines: timelines,
      writing: writing, slice: slice ?? self.slice)
  }

  private func send(
    _ packet: Packet, to space: Int64, _ file: SQLiteStoreFile
  ) throws -> IngestBatch {
    let attempt = try file.ingest(
      [IncomingPacket(packet, byteCount: 100)], into: space, now: now, BatchMatches())
    guard case .done(_, let batch) = attempt else {
      throw StoreError.failed("its matches were asked for")
    }
    return batch
  }

  /// Returns the matches of a packet's batches.
  private func matches(
    of packets: [IncomingPacket], _ file: SQLiteStoreFile
  ) throws -> BatchMatches {
    guard
      case .needsMatches(let wanted) = try file.ingest(
        packets, into: one, now: now, BatchMatches())
    else { throw StoreError.failed("its matches were not asked for") }
    let shared = SharedMatcher(wanted.matcher)
    while !shared.isDone { try shared.slice { try file.show(&$0, in: one) } }
    return shared.matches(since: wanted.origin)
  }

  /// Fills the first space, and returns a packet with a batch on all records in it.
  private func filled(
    _ maker: inout PacketMaker, _ file: SQLiteStoreFile
  ) throws -> [IncomingPacket] {
    let inserts = (0..<500).map { maker.operation(.insert, "r\(1_000 + $0)", [Column("v", "x")]) }
    _ = try send(maker.packet(inserts), to: one, file)
    let batch = try maker.batch(where: "v = 'x'", [Column("w", 1)])
    return [IncomingPacket(maker.packet([batch]), byteCount: 100)]
  }

  private func prepared(
    _ packets: [IncomingPacket], _ file: SQLiteStoreFile, room: IngestRoom = .sliced
  ) throws -> PreparedIngest {
    try file.prepare(packets, in: one, now: now, try matches(of: packets, file), room: room)
  }

  /// Returns the records pulled by a device from the first space.
  private func pulled(_ file: SQLiteStoreFile) throws -> [RecordKey: SequenceNumber] {
    let request = PullRequest(
      cursor: nil, limit: 10_000, byteLimit: 1 << 20, device: nil)
    var found: [RecordKey: SequenceNumber] = [:]
    let page = try SQLitePull(file: file, space: one, request: request, now: now).page().get()
    try page.withUnsafeBytes { bytes in
      _ = try PageReader.read(bytes, limits: .standard) { change in
        #expect(found.updateValue(change.sequence, forKey: change.key) == nil)
      }
    }
    return found
  }

  /// Returns the rows of the first space behind the head.
  private func staged(_ file: SQLiteStoreFile) throws -> Int64 {
    try ["operations", "record_rows", "notices"].reduce(0) { sum, table in
      try sum
        + file.count(
          """
          SELECT count(*) FROM \(table) WHERE space = \(one)
            AND sequence > (SELECT head FROM spaces WHERE id = \(one))
          """)
    }
  }

  private func rows(_ file: SQLiteStoreFile) throws -> Int64 {
    try file.count("SELECT count(*) FROM record_rows WHERE space = \(one)")
  }

  @Test(
    "another space's packet is applied between slices, and the large packet after it, at once",
    arguments: [IngestRoom.sliced, IngestRoom(bytes: 2_000, allowsSlices: true)])
  func beside(room: IngestRoom) throws {
    let (writer, stager) = (try open(), try open())
    var (maker, other) = (PacketMaker(1), PacketMaker(2))
    let packets = try filled(&maker, writer)
    let large = try prepared(packets, stager, room: room)
    #expect(try staged(writer) == 1_001)
    // Nothing of it is visible yet.
    #expect(try writer.head(of: one) == 500)
    #expect(try pulled(writer).values.max() == 500)
    #expect(try send(other.packet("a"), to: two, writer).head == 1)
    let (before, batch) = try large.commit()
    #expect(before == 500 && batch.head == 1_001)
    guard case .accepted(let receipt, _) = batch.results[0] else {
      Issue.record("\(batch.results)")
      return
    }
    #expect(receipt.sequences == 501...1_001 && receipt.outcomes.first?.records == 500)
    // Readers see each record once before the replaced rows are removed, and afterwards.
    let records = try pulled(writer)
    #expect(records.count == 500 && records.values.min() == 502)
    #expect(try rows(writer) == 1_000)
    try stager.removeStagedRows(one)
    #expect(try pulled(writer) == records)
    #expect(try rows(writer) == 500 && staged(writer) == 0)
    #expect(try writer.count("SELECT count(*) FROM operations WHERE space = \(one)") == 1_001)
    // The next packet continues behind it.
    #expect(try send(maker.packet("z"), to: one, writer).head == 1_002)
  }

  @Test("a slice has a bounded number of rows and bytes, except a single large row")
  func slices() {
    func row(_ bytes: Int) -> IngestEffects.NoticeRow {
      IngestEffects.NoticeRow(
        device: DeviceID(UniqueID(high: 0x7000, low: 1 << 63)), sequence: 1,
        body: [UInt8](repeating: 0x20, count: bytes))
    }
    var part = SlicedRows(in: WriteSlice(rows: 3, bytes: 100, matches: 1))
    #expect(part.admits(5_000))
    part.add(row(60))
    #expect(part.admits(40) && !part.admits(41))
    part.add(row(1))
    part.add(row(1))
    #expect(!part.admits(1))
  }

  @Test("a process that ends between slices leaves rows that nobody sees and the next one removes")
  func crash() throws {
    var maker = PacketMaker(1)
    let packets = try filled(&maker, try open())
    // The files are open in a process that does no more.
    let ended = try prepared(packets, try open())
    let next = try open()
    #expect(try staged(next) == 1_001)
    #expect(try pulled(next).count == 500)
    try next.removeStagedRows()
    #expect(try staged(next) == 0 && rows(next) == 500)
    #expect(try next.isSettled(one))
    // The removed slices are not applied either.
    #expect(throws: StagedRows.Lost.self) { try ended.commit() }
    guard
      case .done(500, let batch) = try next.ingest(
        packets, into: one, now: now, try matches(of: packets, next))
    else {
      Issue.record("the packet was not applied")
      return
    }
    #expect(batch.head == 1_001)
  }

  @Test("the next packet of the space removes what an ended process has left")
  func crashWithoutStart() throws {
    var (maker, other) = (PacketMaker(1), PacketMaker(2))
    let packets = try filled(&maker, try open())
    _ = try prepared(packets, try open())
    let next = try open()
    #expect(try send(other.packet("a"), to: one, next).head == 501)
    #expect(try staged(next) == 0)
    _ = try prepared(packets, try open()).commit()
    // Now the replaced rows are left.
    #expect(try rows(next) == 1_001)
    #expect(try send(other.packet("b"), to: one, next).head == 1_003)
    #expect(try rows(next) == 502)
  }

  @Test("a large packet is not applied if its space has changed since, and leaves nothing")
  func changed() throws {
    let (writer, stager) = (try open(slice: .standard), try open())
    var (maker, other) = (PacketMaker(1), PacketMaker(2))
    let packets = try filled(&maker, writer)
    let large = try prepared(packets, stager)
    // Another process does not know the slices, and its packet removes them.
    #expect(try send(other.packet("new"), to: one, writer).head == 501)
    #expect(throws: StagedRows.Lost.self) { try large.commit() }
    #expect(try staged(writer) == 0 && writer.head(of: one) == 501)
    guard
      case .done(501, let batch) = try stager.ingest(
        packets, into: one, now: now, try matches(of: packets, stager))
    else {
      Issue.record("the packet was not applied")
      return
    }
    #expect(batch.head == 1_002)
  }

  @Test("a large packet that is refused after some of its slices leaves nothing")
  func refused() throws {
    let file = try open()
    var (maker, other) = (PacketMaker(1), PacketMaker(2))
    _ = try filled(&maker, file)
    var limits = Limits.standard
    limits.recordStateBytes = 2_000
    let strict = try SQLiteStoreFile(
      path: directory.file(SQLiteStore.fileName).path, limits: limits, timelines: timelines,
      writing: writing, slice: slice)
    let text = Value.text(String(repeating: "x", count: 3_000))
    let writes = (0..<300).map { other.operation(.update, "r\(1_000 + $0)", [Column("w", 1)]) }
    let excess = other.operation(.update, "r1000", [Column("w", text)])
    let batch = try strict.ingest(
      [IncomingPacket(other.packet(writes + [excess]), byteCount: 100)], into: one, now: now,
      BatchMatches(), room: IngestRoom(bytes: 2_000, allowsSlices: true))
    guard case .done(_, let answer) = batch, case .refused(let problem) = answer.results[0] else {
      Issue.record("\(batch)")
      return
    }
    #expect(problem.refusals.map(\.operation) == [excess.id])
    #expect(try staged(file) == 0 && rows(file) == 500)
    #expect(try file.isSettled(one) && file.head(of: one) == 500)
  }

  @Test("records that keep their places are changed after the large packet, and stay single")
  func places() throws {
    let (file, stager) = (try open(), try open())
    var (maker, other) = (PacketMaker(1), PacketMaker(2))
    _ = try filled(&maker, file)
    // Inserts without columns: the records exist already.
    let again = other.packet((0..<500).map { other.operation(.insert, "r\(1_000 + $0)") })
    let records = try pulled(file)
    let large = try stager.prepare(
      [IncomingPacket(again, byteCount: 100)], in: one, now: now, BatchMatches(), room: .sliced)
    #expect(try rows(file) == 1_000)
    #expect(try large.commit().batch.head == 1_000)
    #expect(try pulled(file) == records)
    try stager.removeStagedRows(one)
    #expect(try rows(file) == 500 && staged(file) == 0)
    #expect(try pulled(file) == records)
  }

  @Test("the sums of the hash trees hold a record once while its replaced row is there")
  func sums() throws {
    let (file, stager) = (try open(slice: .standard), try open())
    var maker = PacketMaker(1)
    let packets = try filled(&maker, file)
    #expect(try file.foldDigests(in: one) == 500)
    _ = try prepared(packets, stager).commit()
    #expect(try file.foldDigests(in: one) == 1_001)
    func sum() throws -> [Int64] {
      try [
        file.count("SELECT sum(records) FROM leaf_digests WHERE space = \(one)"),
        file.count("SELECT sequence FROM digest_states WHERE space = \(one)"),
      ]
    }
    #expect(try sum() == [500, 1_001])
    try stager.removeStagedRows(one)
    #expect(try sum() == [500, 1_001])
  }

  @Test("unique keys change hands in slices after their packet, also if a process ends before")
  func uniqueKeys() throws {
    let (file, stager) = (try open(), try open())
    let schema = try SpaceSchema(json: #"{"tables":{"t":{"unique":[["k"]]}}}"#)
    _ = try file.applySchema(schema, to: one, now: now, random: 1).get()
    var (maker, other) = (PacketMaker(1), PacketMaker(2))
    let inserts = (0..<500).map { number in
      maker.operation(.insert, "r\(1_000 + number)", [Column("k", .integer(Int64(number)))])
    }
    _ = try send(maker.packet(inserts), to: one, file)
    func held() throws -> Int64 {
      try file.count("SELECT count(*) FROM unique_keys WHERE space = \(one)")
    }
    #expect(try held() == 500)
    let deletes = maker.packet((0..<500).map { maker.operation(.delete, "r\(1_000 + $0)", []) })
    let large = try stager.prepare(
      [IncomingPacket(deletes, byteCount: 100)], in: one, now: now, BatchMatches(), room: .sliced)
    #expect(try file.count("SELECT count(*) FROM staged_claims") == 500)
    _ = try large.commit()
    #expect(try held() == 500)
    // The next packet of the space finds them free.
    let again = other.operation(.insert, "new", [Column("k", 7)])
    guard case .accepted = try send(other.packet([again]), to: one, file).results[0] else {
      Issue.record("the key is taken")
      return
    }
    #expect(try held() == 1 && file.count("SELECT count(*) FROM staged_claims") == 0)
  }

  @Test("a connection that waits for its turn writes before the one that ends its own and returns")
  func turns() async throws {
    let lock = WriteLock()
    let order = Order()
    let (first, second) = (ThreadExecutor(name: "first"), ThreadExecutor(name: "second"))
    let end = DispatchSemaphore(value: 0)
    async let holder: Void = OnThread(first).run {
      for number in 1...2 {
        lock.withLock {
          order.add("first \(number)")
          if number == 1 { end.wait() }
        }
      }
    }
    try await eventually("the first turn") { !order.names.isEmpty }
    async let waiter: Void = OnThread(second).run {
      lock.withLock { order.add("second") }
    }
    try await eventually("the second connection waits") { lock.waitingCount == 1 }
    end.signal()
    _ = await (holder, waiter)
    #expect(order.names == ["first 1", "second", "first 2"])
  }
}

/// The order of turns.
private final class Order: Sendable {
  private let list = Mutex([String]())
  var names: [String] { list.withLock { $0 } }
  func add(_ name: String) { list.withLock { $0.append(name) } }
}

/// Runs work on a separate thread.
private actor OnThread {
  private let executor: ThreadExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(_ executor: ThreadExecutor) { self.executor = executor }

  func run(_ body: @Sendable () -> Void) { body() }
}

extension SQLiteStoreFile {
  fileprivate func count(_ sql: String) throws -> Int64 {
    try connection.first(sql) { $0.int64(0) } ?? 0
  }
}
