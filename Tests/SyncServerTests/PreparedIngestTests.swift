import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

/// Batches of many records in the embedded store, which has one writer for all spaces.
@Suite("Batches beside the embedded store's writer", .hangLimit)
struct PreparedIngestTests {
  private let directory: TemporaryDirectory
  private let one: Int64
  private let two: Int64
  private let now: Int64 = 1_800_000_000_000
  /// A store's connections share them.
  private let timelines = OwnTimelines()

  init() async throws {
    directory = try TemporaryDirectory()
    let store = try await SQLiteStore(directory: directory.url.path)
    one = try await store.createSpace(try #require(SpaceName("one"))).id
    two = try await store.createSpace(try #require(SpaceName("two"))).id
    await store.close()
  }

  private func open() throws -> SQLiteStoreFile {
    try SQLiteStoreFile(
      path: directory.file(SQLiteStore.fileName).path, limits: .standard, timelines: timelines)
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

  private func isWritten(
    _ prepared: PreparedIngest, of packets: [IncomingPacket], _ file: SQLiteStoreFile
  ) throws -> Bool {
    if case .done? = try file.commit(prepared, of: packets, to: one) { true } else { false }
  }

  /// Fills the first space, and returns a packet with a batch on all of its records.
  private func filled(
    _ maker: inout PacketMaker, _ file: SQLiteStoreFile
  ) throws -> [IncomingPacket] {
    let inserts = (0..<500).map { maker.operation(.insert, "r\(1_000 + $0)", [Column("v", "x")]) }
    _ = try send(maker.packet(inserts), to: one, file)
    let batch = try maker.batch(where: "v = 'x'", [Column("w", 1)])
    return [IncomingPacket(maker.packet([batch]), byteCount: 100)]
  }

  @Test(
    "another space's packet commits while a batch is decided, and the batch is written after it",
    arguments: [IngestRoom.sliced, IngestRoom(bytes: 2_000, allowsSlices: true)])
  func beside(room: IngestRoom) throws {
    let (writer, reader) = (try open(), try open())
    var (maker, other) = (PacketMaker(1), PacketMaker(2))
    let packets = try filled(&maker, writer)
    let matches = try matches(of: packets, reader)
    #expect(matches.count == 500)
    let prepared = try #require(
      try reader.prepare(packets, in: one, now: now, matches, room: room))
    // Nothing of it is visible yet.
    #expect(try writer.head(of: one) == 500)
    #expect(prepared.effects.operations.count == 501)
    #expect(try send(other.packet("a"), to: two, writer).head == 1)
    guard case .done(let before, let batch)? = try writer.commit(prepared, of: packets, to: one)
    else {
      Issue.record("the decision was not written")
      return
    }
    #expect(before == 500 && batch.head == 1_001)
    guard case .accepted(let receipt, _) = batch.results[0] else {
      Issue.record("\(batch.results)")
      return
    }
    #expect(receipt.sequences == 501...1_001 && receipt.outcomes.first?.records == 500)
    #expect(try writer.count("SELECT count(*) FROM operations WHERE space = \(one)") == 1_001)
    #expect(
      try writer.count("SELECT count(DISTINCT sequence) FROM records WHERE space = \(one)") == 500)
    #expect(try writer.count("SELECT min(sequence) FROM records WHERE space = \(one)") == 502)
    // The next packet continues behind it.
    #expect(try send(maker.packet("z"), to: one, writer).head == 1_002)
  }

  @Test("a decision is not written if its space has changed since, and leaves nothing")
  func changed() throws {
    let (writer, reader) = (try open(), try open())
    var (maker, other) = (PacketMaker(1), PacketMaker(2))
    let packets = try filled(&maker, writer)
    let matches = try matches(of: packets, reader)
    let prepared = try #require(
      try reader.prepare(packets, in: one, now: now, matches, room: .sliced))
    #expect(try send(other.packet("new"), to: one, writer).head == 501)
    #expect(try !isWritten(prepared, of: packets, writer))
    #expect(try writer.head(of: one) == 501)
    // The same packet is decided once more, and matches the records as they are now.
    let again = try #require(
      try reader.prepare(packets, in: one, now: now, matches, room: .sliced))
    let attempt = try #require(try writer.commit(again, of: packets, to: one))
    guard case .done(501, let batch) = attempt else {
      Issue.record("\(attempt)")
      return
    }
    #expect(batch.head == 1_002)
    // A copy of it is a duplicate: the writer would decide that.
    #expect(try !isWritten(again, of: packets, writer))
  }

  @Test("the rows of a batch on as many short records as it may match are not too many")
  func most() throws {
    let key = RecordKey(table: "notes", record: "0199c82c-0000-7000-8000-0000000000a1")
    let rows = Limits.standard.batchRecords * 2
    let bytes = (rows + 1) * CollectedRows.rowBytes + rows * (key.record.utf8.count + 150)
    #expect(bytes < CollectedRows.bytesMax)
  }

  @Test("rows that need too much memory are left to the writer")
  func overflow() throws {
    let row = IngestEffects.NoticeRow(
      device: DeviceID(UniqueID(high: 0x7000, low: 1 << 63)), sequence: 1,
      body: [UInt8](repeating: 0x20, count: 8 << 20))
    struct Nothing: IngestSlices {
      func load(_ keys: [RecordKey]) -> [RecordKey: (state: RecordState, bytes: Int)] { [:] }
      func save(_ slice: IngestEffects) {}
    }
    let rows = CollectedRows(Nothing())
    var slice = IngestEffects(space: SpaceState(epoch: Epoch(7)))
    slice.notices = [row]
    for _ in 0..<CollectedRows.bytesMax / (8 << 20) - 1 { try rows.save(slice) }
    #expect(throws: CollectedRows.Overflow.self) {
      try rows.save(slice); try rows.save(slice)
    }
  }
}

extension SQLiteStoreFile {
  fileprivate func count(_ sql: String) throws -> Int64 {
    try connection.first(sql) { $0.int64(0) } ?? 0
  }
}
