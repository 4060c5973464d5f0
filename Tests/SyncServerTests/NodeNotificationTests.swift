import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

/// Stores of several nodes on one PostgreSQL. None reads the heads again by itself, so a lost move
/// would make a test hang.
@Suite("Notifications between nodes", .hangLimit)
struct NodeNotificationTests {
  private struct Node {
    let store: PostgresStore
    let moves: AsyncStream<HeadMove>

    init(_ url: String) async throws {
      store = try await PostgresStore(
        PostgresAddresses(url), limits: .standard, connections: 2, sweepInterval: .seconds(1 << 20))
      moves = store.heads.stream()
    }

    var notifications: NodeNotifications {
      store.counts.notifications ?? NodeNotifications(received: -1, channels: -1)
    }

    /// Waits until the store listens to so many channels.
    func listens(to channels: Int) async throws {
      try await eventually("\(channels) channels") { notifications.channels == channels }
    }

    /// Waits until the store has received so many notifications.
    func received(_ count: Int) async throws {
      try await eventually("\(count) notifications") { notifications.received >= count }
    }

    /// Waits for a head of a space. Returns the moves before it.
    @discardableResult
    func hears(_ space: SpaceSummary, _ head: SequenceNumber) async -> [HeadMove] {
      var before: [HeadMove] = []
      for await move in moves {
        if move.space == space.id, move.head >= head { return before }
        before.append(move)
      }
      return before
    }
  }

  /// A device that writes one record after another.
  private struct Writer {
    let store: PostgresStore
    let space: SpaceSummary
    var maker: PacketMaker
    var head: SequenceNumber = 0

    init(_ node: Node, _ space: SpaceSummary, device: UInt64 = 1) {
      (store, self.space, maker) = (node.store, space, PacketMaker(device))
    }

    mutating func write(_ count: Int = 1) async throws {
      for _ in 0..<count {
        let packet = IncomingPacket(maker.packet("r\(head)"), byteCount: 1)
        head = try await store.ingest([packet], into: space.id, now: 1_800_000_000_000).head
      }
    }
  }

  @Test("a node receives the moves of the spaces that it needs, and of no others")
  func needs() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let (east, west) = (try await Node(url), try await Node(url))
    let busy = try await east.store.createSpace(.known("busy"))
    let watched = try await east.store.createSpace(.known("watched"))
    #expect(HeadWatch.channel(of: busy.id) != HeadWatch.channel(of: watched.id))
    var (noise, news) = (Writer(east, busy), Writer(east, watched))
    try await noise.write(10)
    #expect(west.notifications == NodeNotifications(received: 0, channels: 0))
    west.store.heads.watch(watched.id)
    try await west.listens(to: 1)
    try await noise.write(10)
    // One move after another: moves waiting together are one notification.
    for head in 1...3 {
      try await news.write()
      // Notifications of one database arrive in order: those of `busy` would be there by now.
      #expect(
        await west.hears(watched, SequenceNumber(head)).allSatisfy { $0.space == watched.id })
      // A node may read a head before it hears of it.
      try await west.received(head)
    }
    #expect(west.notifications.received == 3)
    west.store.heads.unwatch(watched.id)
    try await west.listens(to: 0)
    try await news.write(5)
    west.store.heads.watch(busy.id)
    // The head before the watch is read when the channel is listened to.
    await west.hears(busy, 20)
    #expect(west.notifications.received == 3)
    await east.store.close()
    await west.store.close()
  }

  @Test("a node hears of the spaces that it has written to, for its timelines")
  func timelines() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let (east, west) = (try await Node(url), try await Node(url))
    let space = try await east.store.createSpace(.known("s"))
    var (one, two) = (Writer(east, space), Writer(west, space, device: 2))
    try await one.write()
    try await east.listens(to: 1)
    try await two.write(4)
    await east.hears(space, 5)
    // A database restored to the third operation is behind the last head received by this node.
    #expect(east.store.timelines.next(in: space.id, head: 3) != nil)
    await east.store.close()
    await west.store.close()
  }

  @Test("after a lost connection, the moves that were missed and the later ones arrive")
  func lostConnection() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let (east, west) = (try await Node(url), try await Node(url))
    let spaces = [
      try await east.store.createSpace(.known("a")), try await east.store.createSpace(.known("b")),
    ]
    var writers = spaces.map { Writer(east, $0) }
    for space in spaces { west.store.heads.watch(space.id) }
    try await west.listens(to: 2)
    for round in 1...3 {
      try PostgresCluster.disconnectAll(from: url)
      for index in writers.indices { try await writers[index].write(2) }
      for writer in writers { await west.hears(writer.space, SequenceNumber(round * 4 - 2)) }
      try await west.listens(to: 2)
      for index in writers.indices { try await writers[index].write(2) }
      for writer in writers { await west.hears(writer.space, SequenceNumber(round * 4)) }
    }
    await east.store.close()
    await west.store.close()
  }

  @Test("a notification that fails is sent again, with the head that the database has then")
  func repeated() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let (east, west) = (try await Node(url), try await Node(url))
    let space = try await east.store.createSpace(.known("s"))
    var writer = Writer(east, space)
    west.store.heads.watch(space.id)
    try await west.listens(to: 1)
    try await writer.write()
    await west.hears(space, 1)
    try await west.received(1)
    var address = try #require(URLComponents(string: url))
    let proxy = try TCPProxy(to: UInt16(try #require(address.port)))
    let trap = proxy.trap(.request, .cut)
    address.port = Int(proxy.port)
    let pool = try PostgresPool(url: try #require(address.string), connections: 1)
    let heads = try PostgresHeads { 1 }
    // A failover has lost the commits of a move not announced yet by another node.
    heads.notify(HeadMove(space: space.id, head: 7), through: pool)
    try await west.received(2)
    #expect(trap.hasSprung)
    await heads.finish()
    try await writer.write()
    for await move in west.moves {
      #expect(move.head <= 2)
      if move.head == 2 { break }
    }
    await pool.close()
    await east.store.close()
    await west.store.close()
  }

  @Test("a packet that comes again is announced again, since its commit may not have been")
  func announcedAgain() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let (east, west) = (try await Node(url), try await Node(url))
    let space = try await east.store.createSpace(.known("s"))
    west.store.heads.watch(space.id)
    try await west.listens(to: 1)
    var maker = PacketMaker(1)
    let packet = IncomingPacket(maker.packet("a"), byteCount: 1)
    for round in 1...2 {
      _ = try await east.store.ingest([packet], into: space.id, now: 1_800_000_000_000)
      try await west.received(round)
    }
    await east.store.close()
    await west.store.close()
  }

  @Test("watchers that come and go while a space moves miss no head")
  func churn() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    let (east, west) = (try await Node(url), try await Node(url))
    let space = try await east.store.createSpace(.known("s"))
    let writing = Task { [space] in
      var writer = Writer(east, space)
      try await writer.write(300)
      return writer.head
    }
    var seen: SequenceNumber = 0
    while seen < 300 {
      west.store.heads.watch(space.id)
      let present = try #require(try await west.store.space(named: .known("s")))
      // The next head comes in any case, as a notification or from the look at the heads.
      if present.head < 300 { await west.hears(space, present.head + 1) }
      seen = present.head
      west.store.heads.unwatch(space.id)
    }
    #expect(try await writing.value == 300)
    await east.store.close()
    await west.store.close()
  }
}
