import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// A PostgreSQL that goes away and comes back, under a store that stays open.
@Suite(.hangLimit)
struct StoreOutageTests {
  @Test("a store reports that its database is away, and serves again when it is back")
  func outage() async throws {
    let cluster = try PostgresCluster()
    let store = try await PostgresStore(url: try cluster.createDatabase())
    let name = try #require(SpaceName("s"))
    let space = try await store.createSpace(name)
    var maker = PacketMaker(1)
    let packets = [maker.packet("a"), maker.packet("b")].map { IncomingPacket($0, byteCount: 1) }
    let now: Int64 = 1_800_000_000_000
    _ = try await store.ingest([packets[0]], into: space.id, now: now)
    var moves = store.heads.stream().makeAsyncIterator()

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

  @Test("calls to a stalled database end, and succeed when it continues")
  func standsStill() async throws {
    let cluster = try PostgresCluster()
    let store = try await PostgresStore(url: try cluster.createDatabase())
    let space = try await store.createSpace(try #require(SpaceName("s")))
    var maker = PacketMaker(1)
    let packet = IncomingPacket(maker.packet("a"), byteCount: 1)
    try await store.check()

    try cluster.freeze()
    defer { try? cluster.thaw() }
    await #expect { try await store.check() } throws: { Self.isUnavailable($0) }
    await #expect {
      _ = try await store.ingest([packet], into: space.id, now: 1_800_000_000_000)
    } throws: { Self.isUnavailable($0) }
    try cluster.thaw()

    try await eventually("the store to be ready") {
      await Self.failure { try await store.check() } == nil
    }
    // Whether the first attempt was committed is not known: it may be sent again.
    let batch = try await store.ingest([packet], into: space.id, now: 1_800_000_000_000)
    #expect(batch.head == 1)
    await store.close()
  }

  @Test("a database that refuses writes is not ready, and ready again when it accepts them")
  func readOnly() async throws {
    let cluster = try PostgresCluster()
    let url = try cluster.createDatabase()
    let store = try await PostgresStore(url: url)
    let space = try await store.createSpace(try #require(SpaceName("s")))
    var maker = PacketMaker(1)
    let packet = IncomingPacket(maker.packet("a"), byteCount: 1)
    let administration = try PostgresConnection(url: url)
    func setReadOnly(_ value: String) throws {
      try administration.execute("ALTER SYSTEM SET default_transaction_read_only = \(value)")
      try administration.execute("SELECT pg_reload_conf()")
    }

    try await store.check()
    try setReadOnly("on")
    // The server's processes apply the setting one after the other.
    try await eventually("the store to be not ready") {
      if case .readOnly = await Self.failure({ try await store.check() }) { true } else { false }
    }
    // A packet is applied once, so the test may send it until the process has the setting, too.
    let refused = try await eventually("the store to refuse a packet") {
      await Self.failure {
        _ = try await store.ingest([packet], into: space.id, now: 1_800_000_000_000)
      }
    }
    guard case .readOnly = refused else { return #expect(Bool(false), "\(refused)") }
    try setReadOnly("off")
    try await eventually("the store to be ready") {
      await Self.failure { try await store.check() } == nil
    }
    let batch = try await store.ingest([packet], into: space.id, now: 1_800_000_000_000)
    #expect(batch.head == 1)
    await store.close()
  }

  @Test("an operation that takes too long is distinguished from an unavailable database")
  func busy() {
    func error(_ state: String) -> StoreError {
      StoreError(postgres: PostgresError(.server, "m", sqlState: state))
    }
    for state in ["55P03", "57014"] {
      guard case .busy = error(state) else { return #expect(Bool(false), "\(state)") }
    }
    guard case .busy = StoreError(postgres: PostgresError(.busy, "m")) else {
      return #expect(Bool(false), "a pool that is full")
    }
    guard case .unavailable = error("57P01") else { return #expect(Bool(false), "shutdown") }
    guard case .readOnly = error("25006") else { return #expect(Bool(false), "read only") }
  }

  private static func isUnavailable(_ error: any Error) -> Bool {
    if case .unavailable = error as? StoreError { true } else { false }
  }

  private static func failure(_ call: () async throws -> Void) async -> StoreError? {
    do {
      try await call()
      return nil
    } catch {
      return error as? StoreError ?? .failed(String(describing: error))
    }
  }
}
