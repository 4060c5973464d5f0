import FerryNetworking
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncClient

/// A replica's knowledge of the history, as it sends it to a server.
@Suite("A replica's knowledge of the history", .hangLimit)
struct KnownHistoryTests {
  @Test("the known history reaches to the newest confirmed packet, even ahead of the cursor")
  func aheadOfCursor() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 0)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'one')")
    let packet = try replica.freeze()[0]
    _ = try replica.file.chain.receive(replica.receipt(packet, first: 5))
    #expect(try replica.file.syncState().cursor?.anchor == nil)
    let known = try #require(try replica.file.state.knownCursor())
    #expect(known.applied == 0 && known.received == 0)
    #expect(
      known.anchor
        == Cursor.Anchor(
          head: 5, operation: packet.tail!, historyHash: PageMaker.historyHash(at: 5),
          timeline: PageMaker.timeline(at: 5)))
    // The server's page shows whether it has the operations under the present name.
    let plain = try replica.file.syncState().cursor
    #expect(try replica.file.state.knownCursor(ofFormerNames: true) == plain)
    try replica.file.chain.renewIdentity()
    #expect(try replica.file.state.knownCursor(ofFormerNames: true) == known)
    #expect(try replica.file.state.knownCursor() == known)
    // Changes pulled later are newer.
    try replica.apply([], head: 9, tail: packet.tail)
    #expect(try replica.file.state.knownCursor() == replica.file.syncState().cursor)
  }

  @Test("the known history contains nothing of a refused history")
  func refused() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 0)
    for place in [5, 9] as [SequenceNumber] {
      try replica.run("INSERT INTO tasks(id, title) VALUES ('\(place)', 'x')")
      let packet = try #require(try replica.freeze().last)
      _ = try replica.file.chain.receive(replica.receipt(packet, first: place))
    }
    let first = try #require(try replica.file.packets.current().first)
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    #expect(try replica.file.state.knownCursor() == nil)
    try replica.apply(
      [PageMaker().change(1, "tasks", "5", [Column("title", "x")])], head: 1, tail: first.tail)
    #expect(try replica.file.state.knownCursor()?.anchor == PageMaker.anchor(at: 1))
  }

  @Test("after a lost history, a shielded record is pulled again from the start")
  func copySentIt() throws {
    let maker = PageMaker()
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 3)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'one')")
    _ = try replica.freeze()
    #expect(try replica.pending.map(\.base) == [3])
    // A copy of this file has sent it to the restored server, and then something else.
    try ReplacingPull(replica.file).begin(Problem(.historyLost, "lost"))
    try replica.apply(
      [maker.change(2, "tasks", "a", [Column("title", "one")])], head: 5,
      tail: OperationID(UniqueID(high: 9, low: 9)))
    #expect(try replica.pending.map(\.base) == [0])
    let again = try replica.freeze()[0]
    _ = try replica.file.chain.receive(replica.receipt(again, first: 2, status: .duplicate))
    // While it was pulled it was shielded: so it is pulled again, wherever it is.
    #expect(try replica.file.syncState().applied == 0)
  }

  @Test("the known history does not end at a batch")
  func batch() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.apply([], head: 0)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'one')")
    let packet = try replica.freeze()[0]
    var outcome = Outcome.applied
    outcome.records = 1
    _ = try replica.file.chain.receive(replica.receipt(packet, first: 5, outcomes: [outcome]))
    #expect(try replica.file.state.knownCursor()?.anchor == nil)
  }

  /// Responds like a server that is restored from a backup between a pull and the push after it.
  private final class SetBackServer: Transport {
    private struct State {
      var requests: [String] = []
      var packets: [Packet] = []
      var isSetBack = false
    }
    private let state = Mutex(State())
    private let refusesCursors: Bool

    init(refusesCursors: Bool) { self.refusesCursors = refusesCursors }

    var requests: [String] { state.withLock { $0.requests } }
    var packets: [Packet] { state.withLock { $0.packets } }

    func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
      state.withLock { state in
        let query = request.url.split(separator: "?").dropFirst().first ?? ""
        let knows = query.contains("cursor=")
        if request.url.contains("/packets") { return push(request, knows, &state) }
        guard request.url.contains("/changes") else {
          guard let space = SpaceName("demo") else { return answer([], status: 404) }
          return answer(
            SpaceInfo(
              space: space, epoch: PageMaker().epoch, head: 0, role: .writer,
              serverTime: 0
            ).encoded())
        }
        state.requests.append(knows ? "pull" : "pull from the start")
        if state.isSetBack && knows && refusesCursors {
          return answer(Problem(.historyLost, "lost").encoded(), status: 409)
        }
        let applied = state.isSetBack ? nil : state.packets.last?.tail
        let head = state.isSetBack ? 0 : SequenceNumber(state.packets.count)
        return answer(PageMaker().page([], head: head, tail: applied).body)
      }
    }

    private func push(
      _ request: TransportRequest, _ knows: Bool, _ state: inout State
    ) -> TransportResponse {
      guard let packet = try? Packet(decoding: request.body ?? [], limits: .standard),
        let tail = packet.tail
      else { return answer([], status: 400) }
      state.packets.append(packet)
      state.requests.append(knows ? "push" : "push without a cursor")
      if state.packets.count == 2 {
        state.isSetBack = true
        return answer(Problem(.historyLost, "lost").encoded(), status: 409)
      }
      let place = SequenceNumber(state.packets.count == 1 ? 1 : state.packets.count - 2)
      return answer(
        PacketAnswer(
          receipt: PacketReceipt(
            tail: tail, status: .applied, sequences: place...place, outcomes: [.applied],
            historyHashBefore: PageMaker.historyHash(at: place - 1),
            historyHash: PageMaker.historyHash(at: place)),
          released: [], epoch: PageMaker().epoch, head: place, serverTime: 0
        ).encoded())
    }

    private func answer(_ body: [UInt8], status: Int = 200) -> TransportResponse {
      TransportResponse(
        status: status, headers: ["Content-Type": "application/json"], body: body)
    }

    func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
      throw TransportError(.offline, "no streams")
    }
  }

  @Test(
    "a server restored between pull and push gets all operations again, in order",
    arguments: [true, false])
  func setBackBeforePush(refusesCursors: Bool) async throws {
    let directory = try TemporaryDirectory()
    let server = SetBackServer(refusesCursors: refusesCursors)
    let replica = try await Replica.open(
      directory.file("replica.db").path, transport: server, in: .system)
    try await replica.connect(to: "http://127.0.0.1:1", space: "demo")
    try await replica.write {
      try $0.execute("CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT)")
    }
    try await replica.track("tasks")
    for record in ["a", "b"] {
      try await replica.write {
        try $0.execute("INSERT INTO tasks VALUES (?, 'x')", [.text(record)])
      }
      _ = try await replica.push()
    }
    let pulls = refusesCursors ? ["pull", "pull from the start"] : ["pull"]
    #expect(
      server.requests
        == ["pull from the start", "push", "pull", "push"] + pulls + ["push", "push"])
    // Packets are sent side by side, so the last two arrive in either order; the chain has one.
    let packets = server.packets
    try #require(packets.count == 4)
    let again = packets.suffix(2).sorted { one, _ in one.dependency == nil }
    let chain = packets.prefix(2) + again
    #expect(chain.map { $0.operations.map(\.key.record) } == [["a"], ["b"], ["a"], ["b"]])
    #expect(chain[2].dependency == nil && chain[3].dependency == chain[2].tail)
    #expect(chain[2].device != chain[0].device && chain[3].device == chain[2].device)
  }
}
