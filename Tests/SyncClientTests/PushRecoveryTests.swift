import FerryNetworking
import FerryProtocol
import FerryTestSupport
import Synchronization
import Testing

@testable import FerrySyncClient

/// A push that finds an obstacle continues, or names it.
@Suite(.hangLimit)
struct PushRecoveryTests {
  private typealias Obstacle = PushRecovery.Obstacle
  private typealias Step = PushRecovery.Step

  @Test("each obstacle leads to a stronger step, a bounded number of times")
  func steps() {
    let (forked, lost) = (Obstacle.refused(.deviceForked), Obstacle.refused(.historyLost))
    let table: [([Obstacle], [Step])] = [
      ([forked, forked, forked, forked], [.takeIdentity, .takeIdentity, .takeIdentity, .giveUp]),
      ([.refused(.deviceTaken)], [.takeIdentity]),
      (
        [lost, lost, lost, lost, lost],
        [.pull, .pullFromStart, .pullFromStart, .pullFromStart, .giveUp]
      ),
      // A copy wrote, and the server was restored from a backup: each is answered by itself.
      ([forked, lost, lost, forked], [.takeIdentity, .pull, .pullFromStart, .takeIdentity]),
      ([.buffered, .buffered, .buffered], [.pull, .takeIdentity, .giveUp]),
    ]
    for (obstacles, expected) in table {
      var recovery = PushRecovery(isOrdered: false)
      #expect(obstacles.map { recovery.step(after: $0) } == expected)
      #expect(recovery.isOrdered)
    }
  }

  @Test("packets of a restarted chain are sent one after the other")
  func overtaken() async throws {
    let directory = try TemporaryDirectory()
    let server = ChainServer()
    let replica = try await server.replica(in: directory)
    for record in ["a", "b", "c", "d"] {
      try await replica.write {
        try $0.execute("INSERT INTO notes VALUES (?, 'x')", [.text(record)])
      }
      try await replica.thread.run { try $0.chain.freeze(limit: 9) }
    }
    // A copy of the file has sent three of them, and then something else.
    let packets = try await replica.thread.run { file in
      try file.packets.open().map { try file.operations.packet($0, of: file.identity().device) }
    }
    server.know(packets.prefix(3).flatMap(\.operations).map(\.id))
    try await replica.thread.run { try $0.chain.renewIdentity() }
    let device = try await replica.status().device
    let report = try await replica.push()
    #expect(server.forks == 0)
    #expect((report.duplicates, report.pushed, report.left) == (3, 1, 0))
    #expect(try await replica.status().device == device)
    #expect(try await replica.status().pending == 0)
  }

  @Test("packets that the server never accepts end in an error that counts them; none is lost")
  func buffered() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer { request, _ in
      guard request.url.contains("/packets"),
        let packet = try? Packet(decoding: request.body ?? [], limits: .standard),
        let tail = packet.tail
      else { return nil }
      let receipt = PacketReceipt(tail: tail, status: .buffered, sequences: nil, outcomes: [])
      return ScriptedServer.json(
        PacketAnswer(receipt: receipt, epoch: PageMaker().epoch, head: 0, serverTime: 0).encoded(),
        status: 202)
    }
    let replica = try await server.replica(in: directory)
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x')") }
    let device = try await replica.status().device
    await #expect {
      try await replica.sync()
    } throws: {
      guard case .leftBehind(let why) = $0 as? ReplicaError else { return false }
      return why.contains("1 operation is buffered")
    }
    #expect(try await replica.status().pending == 1)
    #expect(try await replica.status().device != device)
    #expect(
      try await replica.log().contains {
        $0.event == "identity" && $0.detail.contains("is buffered")
      })
  }

  @Test("a repeatedly refused identifier ends in an error that names the cause")
  func forked() async throws {
    let directory = try TemporaryDirectory()
    let server = ScriptedServer { request, _ in
      request.url.contains("/packets")
        ? ScriptedServer.json(Problem(.deviceForked, "the very cause").encoded(), status: 409) : nil
    }
    let replica = try await server.replica(in: directory)
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x')") }
    await #expect(throws: ReplicaError.leftBehind("the very cause")) { try await replica.sync() }
    #expect(server.requests.count { $0.url.contains("/packets") } == 4)
    #expect(try await replica.status().pending == 1)
  }

  @Test("a record that a sync defers and then applies is not reported as deferred")
  func deferredAndApplied() async throws {
    let directory = try TemporaryDirectory()
    let tail = Mutex<OperationID?>(nil)
    let server = ScriptedServer { request, _ in
      let maker = PageMaker()
      if request.url.contains("/packets") {
        let packet = try? Packet(decoding: request.body ?? [], limits: .standard)
        tail.withLock { $0 = packet?.tail }
      }
      guard request.url.contains("/changes") else { return nil }
      guard let sent = tail.withLock({ $0 }) else {
        let child = maker.change(1, "items", "i", [Column("note", "n")])
        return ScriptedServer.json(maker.page([child], head: 1).body)
      }
      let parent = maker.change(3, "notes", "n", [Column("body", "x")])
      return ScriptedServer.json(maker.page([parent], head: 3, tail: sent).body)
    }
    let replica = try await server.replica(in: directory)
    try await replica.write {
      try $0.execute("CREATE TABLE items(id TEXT PRIMARY KEY, note TEXT REFERENCES notes(id))")
    }
    try await replica.track("items")
    #expect(try await replica.pull().refused == 1)
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x'), ('b', 'x')") }
    let report = try await replica.sync()
    #expect((report.pushed, report.refused) == (2, 0))
    #expect(try await replica.status().deferred == 0)
  }
}

/// A server that keeps the rules of the chain (SPEC.md §4). It lets the second packet of a chain
/// wait for the third, as a network may.
private final class ChainServer: Transport {
  private struct State {
    var known: Set<OperationID> = []
    var tails: [DeviceID: OperationID] = [:]
    var arrived = 0
    var forks = 0
    var head: SequenceNumber = 0
  }

  private let state = Mutex(State())
  private let pages = ScriptedServer()

  var forks: Int { state.withLock { $0.forks } }

  func know(_ ids: [OperationID]) { state.withLock { $0.known.formUnion(ids) } }

  func replica(in directory: TemporaryDirectory) async throws -> Replica {
    let replica = try await Replica.open(
      directory.file("replica.db").path, transport: self, in: .system)
    try await replica.write {
      try $0.execute("CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
    }
    try await replica.track("notes")
    try await replica.connect(to: "http://127.0.0.1:1", space: "demo")
    return replica
  }

  func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    guard request.url.contains("/packets"),
      let packet = try? Packet(decoding: request.body ?? [], limits: .standard),
      let tail = packet.tail
    else { return try await pages.send(request) }
    let number = state.withLock { state in
      state.arrived += 1
      return state.arrived
    }
    if number == 2 {
      // A later packet overtakes the second if one is on the way.
      for _ in 0..<2_000 where state.withLock({ $0.arrived }) == 2 { await Task.yield() }
      for _ in 0..<200 { await Task.yield() }
    }
    return state.withLock { take(packet, tail, &$0) }
  }

  private func take(
    _ packet: Packet, _ tail: OperationID, _ state: inout State
  ) -> TransportResponse {
    let isKnown = packet.operations.allSatisfy { state.known.contains($0.id) }
    let isNext = packet.dependency == state.tails[packet.device]
    let isPast = packet.dependency.map { state.known.contains($0) } ?? true
    guard isNext || isKnown && isPast else {
      state.forks += 1
      return ScriptedServer.json(Problem(.deviceForked, "overtaken").encoded(), status: 409)
    }
    if isNext { state.tails[packet.device] = tail }
    state.known.formUnion(packet.operations.map(\.id))
    let first = state.head + 1
    if !isKnown { state.head += SequenceNumber(packet.operations.count) }
    let receipt = PacketReceipt(
      tail: tail, status: isKnown ? .duplicate : .applied,
      sequences: isKnown ? nil : first...state.head,
      outcomes: packet.operations.map { _ in .applied })
    return ScriptedServer.json(
      PacketAnswer(receipt: receipt, epoch: PageMaker().epoch, head: state.head, serverTime: 0)
        .encoded())
  }

  func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
    throw TransportError(.offline, "no streams")
  }
}
