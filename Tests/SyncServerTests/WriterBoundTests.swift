import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The bounds of a transaction on the embedded store's writer. Beside each packet sent away, a
/// similar one stays on the writer, so nothing else sends the first one away.
@Suite("Bounds of the embedded store's writer", .hangLimit)
struct WriterBoundTests {
  private let directory: TemporaryDirectory
  private let file: SQLiteStoreFile
  private let space: Int64
  private let now: Int64 = 1_800_000_000_000
  private var one = PacketMaker(1)
  private var two = PacketMaker(2)

  init() async throws {
    directory = try TemporaryDirectory()
    let store = try await SQLiteStore(directory: directory.url.path)
    space = try await store.createSpace(try #require(SpaceName("one"))).id
    await store.close()
    file = try SQLiteStoreFile(
      path: directory.file(SQLiteStore.fileName).path, limits: .standard,
      slice: WriteSlice(rows: 10, bytes: 4_000, matches: 10, merged: 3_000))
    let schema = try SpaceSchema(
      json: #"{"tables":{"t":{"columns":{"tags":"set-union","n":{"type":"integer"}}}}}"#)
    _ = try file.applySchema(schema, to: space, now: now, random: 1).get()
    try send(one.packet([one.operation(.insert, "r", [Column("tags", set(900))])]))
  }

  private func set(_ bytes: Int) -> Value {
    .text("[\"" + String(repeating: "x", count: bytes) + "\"]")
  }

  private func incoming(_ packets: [Packet]) -> [IncomingPacket] {
    packets.map { IncomingPacket($0, byteCount: 100) }
  }

  private func send(_ packet: Packet) throws {
    guard case .done = try file.ingest(incoming([packet]), into: space, now: now, BatchMatches())
    else { throw StoreError.failed("its matches were asked for") }
  }

  /// Returns whether the writer decides about packets.
  private func stays(
    _ packets: [Packet], _ matches: BatchMatches = BatchMatches()
  ) throws -> Bool {
    let head = try file.head(of: space)
    let attempt = try file.ingestAtOnce(
      incoming(packets), into: space, now: now, matches, room: .sliced)
    if attempt == nil { #expect(try file.head(of: space) == head) }
    return attempt != nil
  }

  private mutating func unions(_ count: Int) -> [SyncOperation] {
    (0..<count).map { two.operation(.update, "r", [Column("tags", .text("[\($0)]"))]) }
  }

  @Test("buffered packets that a packet releases count as it does", arguments: [1, 5])
  mutating func released(count: Int) throws {
    let first = two.packet([two.operation(.insert, "other", [Column("n", 1)])])
    let second = two.packet(unions(count))
    try send(second)
    #expect(try stays([first]) == (count == 1))
  }

  @Test("the effects of a batch count as updates do", arguments: [1, 5])
  mutating func batches(count: Int) throws {
    let batches = try (0..<count).map { number in
      try two.batch(where: "id = 'r'", [Column("tags", .text("[\(number)]"))])
    }
    let packet = two.packet(batches)
    guard
      case .needsMatches(let wanted) = try file.ingest(
        incoming([packet]), into: space, now: now, BatchMatches())
    else { throw StoreError.failed("its matches were not asked for") }
    let shared = SharedMatcher(wanted.matcher)
    while !shared.isDone { try shared.slice { try file.show(&$0, in: space) } }
    #expect(try stays([packet], shared.matches(since: wanted.origin)) == (count == 1))
  }

  @Test("a decision that begins again for each refused packet counts each time", arguments: [2, 9])
  func refused(count: Int) throws {
    let packets = (1...count).map { number in
      var maker = PacketMaker(UInt64(10 + number))
      return maker.packet([maker.operation(.insert, "r\(number)", [Column("n", "text")])])
    }
    #expect(try stays(packets) == (count == 2))
  }

  @Test("a record counts for each packet that touches it", arguments: [2, 10])
  func encodings(count: Int) throws {
    let packets = (1...count).map { number in
      var maker = PacketMaker(UInt64(10 + number))
      return maker.packet([maker.operation(.update, "r", [Column("n", 1)])])
    }
    #expect(try stays(packets) == (count == 2))
  }
}
