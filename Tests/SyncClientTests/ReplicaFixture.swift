import FerryProtocol
import FerrySQLite
import FerryTestSupport

@testable import FerrySyncClient

/// A replica's file in a new directory, with a clock and random numbers moved by a test.
final class ReplicaFixture {
  let directory: TemporaryDirectory
  let path: String
  private(set) var file: ReplicaFile
  let clock = TestClock()
  let credentials = MemoryCredentialStore()
  private let limits: Limits
  /// Runs after each slice of a list that is filled in.
  var afterSlice: () throws -> Void = {}

  init(limits: Limits = .standard) throws {
    self.limits = limits
    directory = try TemporaryDirectory()
    path = directory.file("replica.db").path
    file = try Self.open(path, clock, credentials, limits)
  }

  /// Opens the file again, like a restarted process.
  func reopen() throws { file = try Self.open(path, clock, credentials, limits) }

  /// Returns a second writer on the same file, as another process has.
  func other() throws -> ReplicaFile { try Self.open(path, clock, credentials, limits) }

  private static func open(
    _ path: String, _ clock: TestClock, _ credentials: MemoryCredentialStore, _ limits: Limits
  ) throws -> ReplicaFile {
    try ReplicaFile(
      path: path, limits: limits, wallClock: { clock.now }, random: { clock.nextRandom() },
      credentials: credentials)
  }

  /// Returns a tracked table of tasks.
  static func withTasks(limits: Limits = .standard) throws -> ReplicaFixture {
    let fixture = try ReplicaFixture(limits: limits)
    try fixture.run("CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT, done INTEGER DEFAULT 0)")
    try fixture.file.track(["tasks"])
    return fixture
  }

  @discardableResult
  func run(_ sql: String, _ parameters: [Value] = []) throws -> Int {
    try file.write { try $0.execute(sql, parameters) }
  }

  func rows(_ sql: String) throws -> [[Value]] {
    try file.write { try $0.query(sql).map(\.values) }
  }

  var pending: [SyncOperation] {
    get throws { try file.queue.oldest(100_000).map(\.operation) }
  }
}

/// A clock moved only by a test.
final class TestClock {
  var now: Int64 = 1_800_000_000_000
  private var state: UInt64 = 42

  /// Returns the next number by SplitMix64 (Steele, Lea and Flood, 2014).
  func nextRandom() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

/// Pages as a server would send them.
struct PageMaker {
  var epoch = Epoch(7)
  var device = DeviceID(UniqueID(high: 0xB, low: 0xB))

  func change(
    _ sequence: SequenceNumber, _ table: Name, _ record: Name, _ columns: [Column],
    inserts: Bool = true, at milliseconds: Int64 = 1_700_000_000_000
  ) -> Change {
    let stamp = Stamp(time: HybridTimestamp(milliseconds: milliseconds), device: device)
    return Change(
      sequence: sequence, key: RecordKey(table: table, record: record),
      state: RecordState(
        inserted: inserts ? SequencedStamp(stamp: stamp, sequence: sequence) : nil,
        columns: columns.sorted { $0.name < $1.name }.map {
          ColumnState(name: $0.name, value: $0.value, stamp: stamp, sequence: sequence)
        }))
  }

  func deletion(
    _ sequence: SequenceNumber, _ table: Name, _ record: Name,
    at milliseconds: Int64 = 1_700_000_000_000
  ) -> Change {
    let stamp = Stamp(time: HybridTimestamp(milliseconds: milliseconds), device: device)
    return Change(
      sequence: sequence, key: RecordKey(table: table, record: record),
      state: RecordState(deleted: SequencedStamp(stamp: stamp, sequence: sequence)))
  }

  /// Returns the history hash of this server at a place.
  static func historyHash(at sequence: SequenceNumber) -> UInt64 {
    UInt64(sequence) &* 0x9E37_79B9_7F4A_7C15
  }

  /// Returns the timeline of this server's history at a place: one begins each ten places.
  static func timeline(at sequence: SequenceNumber) -> Timeline {
    Timeline(UInt64(sequence / 10))
  }

  static func anchor(at head: SequenceNumber) -> Cursor.Anchor? {
    guard head > 0 else { return nil }
    let operation = OperationID(UniqueID(high: 0x7000, low: UInt64(head)))
    return Cursor.Anchor(
      head: head, operation: operation, historyHash: historyHash(at: head),
      timeline: timeline(at: head))
  }

  func page(
    _ changes: [Change], head: SequenceNumber? = nil, more: Bool = false,
    applied: SequenceNumber = 0, tail: OperationID? = nil, serverTime: Int64 = 0,
    notices: [Notice] = []
  ) -> (body: [UInt8], head: PageHead) {
    let last = changes.last?.sequence ?? head ?? 0
    let newest = head ?? last
    let pageHead = PageHead(
      epoch: epoch, head: newest,
      cursor: more
        ? Cursor(epoch: epoch, applied: applied, received: last, anchor: Self.anchor(at: newest))
        : Cursor(epoch: epoch, applied: newest, anchor: Self.anchor(at: newest)),
      more: more, appliedTail: tail, serverTime: serverTime, count: changes.count)
    var json = JSONWriter()
    var listed = JSONWriter()
    for notice in notices {
      listed.element()
      listed.notice(notice)
    }
    json.beginPage(pageHead, notices: listed.finish())
    for change in changes {
      json.element()
      json.change(change)
    }
    json.endPage()
    return (json.finish(), pageHead)
  }
}

extension ReplicaFixture {
  /// Applies changes as the only page of a pull list.
  @discardableResult
  func apply(
    _ changes: [Change], head: SequenceNumber? = nil, tail: OperationID? = nil,
    serverTime: Int64 = 0, notices: [Notice] = []
  ) throws -> AppliedPull {
    let page = PageMaker().page(
      changes, head: head, tail: try tail ?? confirmedTail(at: head), serverTime: serverTime,
      notices: notices)
    return try file.apply(last: page.body, page.head)
  }

  /// Returns the confirmed tail reported by a server without losses for this device at a head.
  private func confirmedTail(at head: SequenceNumber?) throws -> OperationID? {
    try file.connection.first(
      """
      SELECT tail, number FROM ferry_packets
      WHERE state = 'acknowledged' AND (last IS NULL OR last <= ?)
      ORDER BY number DESC LIMIT 1
      """, head ?? .max
    ) { $0.uniqueID(0).map { OperationID($0) } } ?? nil
  }

  /// Returns the receipt of a server that applies the packet at these places.
  func receipt(
    _ packet: Packet, first: SequenceNumber, status: PacketReceipt.Status = .applied,
    outcomes: [Outcome]? = nil
  ) throws -> PacketAnswer {
    let last = first + SequenceNumber(packet.operations.count) - 1
    let hasHistoryHashes = status == .applied
    return PacketAnswer(
      receipt: PacketReceipt(
        tail: packet.operations[packet.operations.count - 1].id, status: status,
        sequences: status == .buffered ? nil : first...last,
        outcomes: outcomes ?? packet.operations.map { _ in .applied },
        historyHashBefore: hasHistoryHashes ? PageMaker.historyHash(at: first - 1) : nil,
        historyHash: hasHistoryHashes ? PageMaker.historyHash(at: last) : nil,
        timeline: hasHistoryHashes ? PageMaker.timeline(at: last) : nil),
      epoch: PageMaker().epoch, head: last, serverTime: 0)
  }

  /// Freezes and returns the open packets.
  func freeze(limit: Int = 4) throws -> [Packet] {
    try file.chain.freeze(limit: limit)
    return try file.packets.open().map {
      try file.operations.packet($0, of: file.identity().device)
    }
  }
}
