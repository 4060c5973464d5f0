import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The order of changes and notices in pages, by the builder alone: a store's reads may be cut
/// short.
@Suite(.hangLimit)
struct PageBuilderTests {
  /// A space's list, for one device.
  struct List {
    var changes: [(sequence: SequenceNumber, state: [UInt8])] = []
    var notices: [NoticeFeed.Row] = []
    var head: SequenceNumber = 0

    init(seed: UInt64) {
      var random = RandomBits(seed: seed)
      for sequence in Int64(1)...40 {
        head = sequence
        // Records written again later leave gaps, as do notices of other devices.
        if random.next() % 2 == 0 { add(change: sequence, size: Int(random.next() % 60)) }
        if random.next() % 3 == 0 { add(notice: sequence) }
      }
      // The newest records' tombstones may have been pruned.
      if random.next() % 2 == 0 { changes.removeAll { $0.sequence > 30 } }
    }

    private mutating func add(change sequence: SequenceNumber, size: Int) {
      let stamp = Stamp(
        time: HybridTimestamp(milliseconds: sequence), device: DeviceID(UniqueID(high: 7, low: 1)))
      let column = ColumnState(
        name: "x", value: .text(String(repeating: "x", count: size)), stamp: stamp,
        sequence: sequence)
      let state = RecordState(
        inserted: SequencedStamp(stamp: stamp, sequence: sequence), columns: [column])
      changes.append((sequence, state.stored()))
    }

    private mutating func add(notice sequence: SequenceNumber) {
      let notice = Notice(
        sequence: sequence, operation: OperationID(UniqueID(high: 0, low: UInt64(sequence))),
        key: RecordKey(table: "t", record: "r\(sequence)"), conflicts: [])
      var json = JSONWriter()
      json.notice(notice)
      notices.append(NoticeFeed.Row(sequence: sequence, body: json.finish()))
    }

    /// Returns a page from a store's reads, which are `read` rows of either kind at most.
    func page(_ request: PullRequest, read: Int) throws -> [UInt8] {
      let received = request.cursor?.received ?? 0
      let feed = NoticeFeed(
        Array(notices.filter { $0.sequence > received }.prefix(read)),
        newest: notices.last?.sequence ?? 0)
      var page = PageBuilder(request, notices: feed)
      for change in changes.filter({ $0.sequence > received }).prefix(read) {
        guard page.hasRoom, page.admits(change.sequence) else { break }
        let record = StoredRecordName("r\(change.sequence)")
        try Array("t".utf8).withUnsafeBytes { table in
          try change.state.withUnsafeBytes { state in
            _ = try page.add(
              sequence: change.sequence, table: table, record: record, state: state,
              wholeBelow: change.sequence)
          }
        }
      }
      return page.finish(
        SpaceSnapshot(epoch: Epoch(7), head: head, newest: nil, anchored: nil, retentionHorizon: 0),
        newest: changes.last?.sequence ?? 0, appliedTail: nil, now: 1)
    }
  }

  @Test("the loss of a history is reported before the expiry of the cursor")
  func lostBeforeExpired() {
    let operation = OperationID(UniqueID(high: 0, low: 9))
    func code(
      _ historyHash: UInt64, retentionHorizon: SequenceNumber, timeline: Timeline? = nil,
      end: SequenceNumber? = nil
    ) -> ProblemCode? {
      let space = SpaceSnapshot(
        epoch: Epoch(7), head: 12, newest: operation,
        anchored: HistoryPlace(sequence: 9, historyHash: 1), timelineEnd: end,
        retentionHorizon: retentionHorizon)
      let cursor = Cursor(
        epoch: Epoch(7), applied: 3,
        anchor: Cursor.Anchor(
          head: 9, operation: operation, historyHash: historyHash, timeline: timeline))
      let request = PullRequest(cursor: cursor, limit: 9, byteLimit: 999, device: nil)
      return PageBuilder.fault(in: request, space)?.code
    }
    #expect(code(1, retentionHorizon: 3) == nil)
    #expect(code(1, retentionHorizon: 5) == .cursorExpired)
    #expect(code(2, retentionHorizon: 5) == .historyLost)
    // Below the retention horizon the timeline alone is known.
    #expect(code(2, retentionHorizon: 10) == .cursorExpired)
    #expect(code(2, retentionHorizon: 10, timeline: Timeline(7)) == .lostAndExpired)
    #expect(code(2, retentionHorizon: 10, timeline: Timeline(7), end: 8) == .lostAndExpired)
    #expect(code(2, retentionHorizon: 10, timeline: Timeline(7), end: 9) == .cursorExpired)
    #expect(code(2, retentionHorizon: 10, timeline: Timeline(7), end: .max) == .cursorExpired)
    #expect(code(1, retentionHorizon: 3, timeline: Timeline(7)) == nil, "the operation tells more")
  }

  @Test(
    "pages of any size contain every change and notice once, in the page of its sequence",
    arguments: UInt64(1)...150)
  func everythingOnce(seed: UInt64) throws {
    let list = List(seed: seed)
    for (limit, byteLimit, read) in [
      (1, 9_999, 1), (2, 9_999, 2), (3, 9_999, 5), (99, 1, 99), (99, 400, 99), (99, 400, 2),
      (99, 9_999, 3), (99, 99_999, 99),
    ] {
      var request = PullRequest(cursor: nil, limit: limit, byteLimit: byteLimit, device: nil)
      var (changes, notices): ([SequenceNumber], [SequenceNumber]) = ([], [])
      var more = true
      while more {
        let bytes = try list.page(request, read: read)
        let start = request.cursor?.received ?? 0
        var places: [SequenceNumber] = []
        let head = try bytes.withUnsafeBytes { bytes in
          try PageReader.read(bytes, limits: .standard) { places.append($0.sequence) }
        }
        let told = try PageReader.notices(of: bytes, limits: .standard).map(\.sequence)
        let end = head.cursor.received
        #expect((places + told).allSatisfy { start < $0 && $0 <= end })
        #expect(Set(places + told).count <= limit)
        try #require(!head.more || end > start)
        #expect(head.more || head.cursor == Cursor(epoch: Epoch(7), applied: list.head))
        changes += places
        notices += told
        (more, request.cursor) = (head.more, head.cursor)
      }
      #expect(changes == list.changes.map(\.sequence))
      #expect(notices == list.notices.map(\.sequence))
    }
  }

  @Test("notices count towards a page's bytes")
  func bytes() throws {
    var list = List(seed: 4)
    list.changes = []
    let size = try #require(list.notices.last).body.count
    let request = PullRequest(cursor: nil, limit: 99, byteLimit: size * 2 + 2, device: nil)
    let bytes = try list.page(request, read: 99)
    #expect(try PageReader.notices(of: bytes, limits: .standard).count == 3)
    let head = try PageReader.head(of: bytes)
    #expect(head.more && head.count == 0)
    #expect(head.cursor.received == list.notices[2].sequence)
  }

  @Test("a page without notices equals the page of a builder that knows none", arguments: 1...20)
  func unchanged(seed: Int) throws {
    var list = List(seed: UInt64(seed))
    list.notices = []
    let bytes = try list.page(
      PullRequest(cursor: nil, limit: 5, byteLimit: 9_999, device: nil), read: 99)
    #expect(!String(decoding: bytes, as: UTF8.self).contains("notices"))
    let last = list.changes.prefix(5).last?.sequence
    #expect(try PageReader.head(of: bytes).cursor.received == last)
    #expect(PageCount.read(bytes) == 5)
  }

  @Test("the count of changes is read from a page's head beside its notices")
  func count() throws {
    let list = List(seed: 3)
    let bytes = try list.page(
      PullRequest(cursor: nil, limit: 99, byteLimit: 99_999, device: nil), read: 99)
    #expect(PageCount.read(bytes) == list.changes.count)
  }
}

/// SplitMix64.
private struct RandomBits: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
