import FerryProtocol
import SyncServer
import TestSupport
import Testing

/// A PostgreSQL that goes away and comes back, under a store that stays open.
@Suite(.hangLimit)
struct StoreOutageTests {
  @Test("a store says that its database is away, and serves again when it is back")
  func outage() async throws {
    let cluster = try PostgresCluster()
    let store = try await PostgresStore(url: try cluster.createDatabase())
    let name = try #require(SpaceName("s"))
    let space = try await store.createSpace(name)
    var maker = PacketMaker(1)
    let packets = [maker.packet("a"), maker.packet("b")].map { IncomingPacket($0, byteCount: 1) }
    let now: Int64 = 1_800_000_000_000
    _ = try await store.ingest([packets[0]], into: space.id, now: now)
    var moves = store.headMoves().makeAsyncIterator()

    try cluster.stop(.immediate)
    await #expect { try await store.check() } throws: { error in
      if case .unavailable = error as? StoreError { true } else { false }
    }
    try cluster.start()

    // The heads come again, even though no head has moved.
    while let move = await moves.next(), move != HeadMove(space: space.id, head: 1) {}
    let batch = try await store.ingest(packets, into: space.id, now: now)
    #expect(batch.results.map(\.word) == ["duplicate", "applied"])
    #expect(batch.head == 2)
    while let move = await moves.next(), move != HeadMove(space: space.id, head: 2) {}
    await store.close()
  }

  @Test("a connection that the server closed is replaced within the call")
  func closedConnections() async throws {
    let cluster = try PostgresCluster()
    let store = try await PostgresStore(url: try cluster.createDatabase())
    let space = try await store.createSpace(try #require(SpaceName("s")))
    var maker = PacketMaker(1)
    for number in 0..<3 {
      let packet = IncomingPacket(maker.packet("r\(number)"), byteCount: 1)
      let batch = try await store.ingest([packet], into: space.id, now: 1_800_000_000_000)
      #expect(batch.head == SequenceNumber(number + 1))
      try cluster.restart(.immediate)
    }
    await store.close()
  }
}
