import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

/// Confirmations of a server that lies, and the pages after them (SPEC.md §5, §22).
@Suite("Confirmations that a page contradicts", .hangLimit)
struct ConfirmationTests {
  private static func id(_ low: UInt64) -> OperationID {
    OperationID(UniqueID(high: 1, low: low))
  }

  @Test("a page's tail is news unless a page has named the same end before")
  func news() {
    let proved = ConfirmedEnd(tail: Self.id(2), isProved: true)
    let claimed = ConfirmedEnd(tail: Self.id(2), isProved: false)
    let table: [(tail: OperationID?, end: ConfirmedEnd?, isNews: Bool)] = [
      (nil, nil, false), (Self.id(1), nil, false), (nil, proved, true), (Self.id(1), proved, true),
      (Self.id(2), proved, false), (Self.id(3), proved, true), (nil, claimed, true),
      (Self.id(1), claimed, true), (Self.id(2), claimed, true),
    ]
    for row in table { #expect(ConfirmedEnd.isNews(row.tail, to: row.end) == row.isNews) }
  }

  /// A receipt for a packet dropped by the server.
  enum Lie: String, CaseIterable, Sendable {
    case atTheCursor, withoutPlaces, behindTheCursor
    case duplicateWithoutPlaces, duplicateBehindTheCursor

    func receipt(for packet: Packet, after applied: SequenceNumber) -> PacketReceipt {
      let places = applied + 1...applied + SequenceNumber(packet.operations.count)
      let behind = 1...SequenceNumber(packet.operations.count)
      let isDuplicate = self == .duplicateWithoutPlaces || self == .duplicateBehindTheCursor
      let sequences: ClosedRange<SequenceNumber>? =
        switch self {
        case .atTheCursor: places
        case .behindTheCursor, .duplicateBehindTheCursor: behind
        case .withoutPlaces, .duplicateWithoutPlaces: nil
        }
      let hashes = self == .atTheCursor || self == .behindTheCursor
      return PacketReceipt(
        tail: packet.operations[packet.operations.count - 1].id,
        status: isDuplicate ? .duplicate : .applied, sequences: sequences,
        outcomes: packet.operations.map { _ in .applied },
        historyHashBefore: hashes ? PageMaker.historyHash(at: applied) : nil,
        historyHash: hashes ? 7 : nil, timeline: nil)
    }
  }

  /// Returns a replica with a packet named by a page, and one dropped by the server with a receipt.
  private func confirmed(by lie: Lie) throws -> (ReplicaFixture, named: Packet, dropped: Packet) {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 0)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'one')")
    let named = try replica.freeze()[0]
    _ = try replica.file.chain.receive(replica.receipt(named, first: 1))
    try idle(replica, naming: named)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('b', 'two')")
    let dropped = try replica.freeze()[0]
    let applied = try replica.file.syncState().applied
    let answer = PacketAnswer(
      receipt: lie.receipt(for: dropped, after: applied), epoch: PageMaker().epoch,
      head: lie == .atTheCursor ? applied + 1 : applied, serverTime: 0)
    _ = try replica.file.chain.receive(answer)
    #expect(try replica.freeze().isEmpty)
    return (replica, named, dropped)
  }

  /// Applies a page without changes at the device's own cursor.
  private func idle(
    _ replica: ReplicaFixture, naming packet: Packet?, serverTime: Int64 = 0
  ) throws {
    try idle(replica, namingTail: packet?.tail, serverTime: serverTime)
  }

  private func idle(
    _ replica: ReplicaFixture, namingTail tail: OperationID?, serverTime: Int64 = 0
  ) throws {
    let cursor = try #require(try replica.file.syncState().cursor)
    let head = PageHead(
      epoch: cursor.epoch, head: cursor.applied, cursor: cursor, more: false,
      appliedTail: tail, serverTime: serverTime, count: 0)
    var json = JSONWriter()
    json.beginPage(head)
    json.endPage()
    _ = try replica.file.apply(last: json.finish(), head)
  }

  private func sent(_ replica: ReplicaFixture) throws -> [OperationID] {
    try replica.freeze().flatMap(\.operations).map(\.id)
  }

  @Test(
    "a page without changes that names an earlier tail opens confirmed packets again",
    arguments: Lie.allCases)
  func earlierTail(lie: Lie) throws {
    let (replica, named, dropped) = try confirmed(by: lie)
    try idle(replica, naming: named)
    #expect(try sent(replica) == dropped.operations.map(\.id))
  }

  @Test(
    "a page without changes that names no tail opens all kept packets again",
    arguments: Lie.allCases)
  func noTail(lie: Lie) throws {
    let (replica, named, dropped) = try confirmed(by: lie)
    try idle(replica, naming: nil)
    #expect(try sent(replica) == (named.operations + dropped.operations).map(\.id))
  }

  @Test("a page that names the same tail confirms it, once", arguments: Lie.allCases)
  func sameTail(lie: Lie) throws {
    let (replica, _, dropped) = try confirmed(by: lie)
    for _ in 0..<2 { try idle(replica, naming: dropped) }
    #expect(try sent(replica).isEmpty)
    let end = try #require(try replica.file.packets.confirmedEnd())
    #expect(!ConfirmedEnd.isNews(dropped.tail, to: end))
  }

  @Test(
    "a change of the identifier sends packets again that only a receipt has confirmed",
    arguments: Lie.allCases)
  func newIdentity(lie: Lie) throws {
    let (replica, _, dropped) = try confirmed(by: lie)
    try replica.file.chain.renewIdentity()
    // A history hash past the cursor is in the next request: the server rejects this request.
    #expect(try sent(replica) == (lie == .atTheCursor ? [] : dropped.operations.map(\.id)))
  }

  @Test(
    "a page that names an unknown tail sends packets again that only a receipt has confirmed",
    arguments: Lie.allCases)
  func unknownTail(lie: Lie) throws {
    let (replica, _, dropped) = try confirmed(by: lie)
    let former = try replica.file.identity().device
    try idle(replica, namingTail: Self.id(9))
    #expect(try replica.file.identity().device != former)
    #expect(try sent(replica) == (lie == .atTheCursor ? [] : dropped.operations.map(\.id)))
  }

  @Test(
    "a rejected packet sends packets again that only a receipt has confirmed",
    arguments: Lie.allCases)
  func rejection(lie: Lie) throws {
    let (replica, _, dropped) = try confirmed(by: lie)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('c', 'three')")
    _ = try replica.freeze()
    let number = try #require(try replica.file.packets.open().first).number
    _ = try replica.file.refusedOperations.removePacket(
      number, code: .invalidPredicate, detail: "no")
    #expect(try sent(replica) == (lie == .atTheCursor ? [] : dropped.operations.map(\.id)))
    #expect(try replica.file.quarantine.count() == 1)
  }

  @Test("an increment counts once, though a receipt named a place that is too high")
  func falsePlace() throws {
    let (replica, maker) = (try ReplicaFixture(), PageMaker())
    try replica.run("CREATE TABLE polls(id TEXT PRIMARY KEY, votes INTEGER)")
    try replica.file.track(["polls"])
    let document = #"{"version":1,"tables":{"polls":{"columns":{"votes":"counter"}}}}"#
    try replica.apply([
      maker.change(
        1, "ferry_schema", "schema", [Column("document", .text(document)), Column("version", 1)]),
      maker.change(2, "polls", "p", [Column("votes", 5)]),
    ])
    try replica.run("UPDATE polls SET votes = votes + 4")
    let packet = try replica.freeze()[0]
    var answer = try replica.receipt(packet, first: 40)
    (answer.receipt.historyHashBefore, answer.receipt.historyHash) = (nil, nil)
    _ = try replica.file.chain.receive(answer)
    let counted = maker.change(3, "polls", "p", [Column("votes", 9)], inserts: false)
    try replica.apply([counted], head: 3, tail: packet.tail)
    #expect(try replica.rows("SELECT votes FROM polls") == [[9]])
  }

  @Test(
    "a server that lies about the time makes a device keep what it confirmed",
    arguments: Lie.allCases)
  func falseTime(lie: Lie) throws {
    let (replica, named, dropped) = try confirmed(by: lie)
    try idle(replica, naming: dropped, serverTime: Limits.wallTimeMax)
    try idle(replica, naming: named)
    #expect(try sent(replica) == dropped.operations.map(\.id))
  }
}
