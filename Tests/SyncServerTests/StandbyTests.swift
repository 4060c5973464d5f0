import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

/// A store over a primary and its hot standby: real servers, with streaming replication.
@Suite("A PostgreSQL with a standby", .hangLimit)
struct StandbyTests {
  private static let now: Int64 = 1_800_000_000_000

  private struct Pair {
    let primary: PostgresCluster
    let standby: PostgresCluster
    let database: String
    let reads: String

    init() throws {
      primary = try PostgresCluster()
      database = try primary.createDatabase()
      standby = try primary.makeStandby()
      reads = try standby.url(of: database)
    }

    func store() async throws -> PostgresStore {
      try await PostgresStore(PostgresAddresses(database, reads: reads), limits: .standard)
    }
  }

  private static func head(
    _ store: PostgresStore, _ space: SpaceSummary, after applied: SequenceNumber
  ) async throws -> SequenceNumber {
    let request = PullRequest(
      cursor: Cursor(epoch: space.epoch, applied: applied), limit: 10, byteLimit: 1 << 20,
      device: nil)
    let page = try await store.changes(in: space.id, request, now: now).get()
    return try PageReader.head(of: page).head
  }

  @Test("a pull after a commit has the commit, and the standby answers nearly all pulls")
  func current() async throws {
    let pair = try Pair()
    let store = try await pair.store()
    let space = try await store.createSpace(try #require(SpaceName("s")))
    var maker = PacketMaker(1)
    for number in 1...60 {
      let packet = IncomingPacket(maker.packet("r\(number)"), byteCount: 1)
      _ = try await store.ingest([packet], into: space.id, now: Self.now)
      let head = try await Self.head(store, space, after: SequenceNumber(number - 1))
      #expect(head == SequenceNumber(number))
    }
    let counts = try #require(store.standbyPulls)
    #expect(counts.answered + counts.passedOn == 60 && counts.answered > 0)
    await store.close()
  }

  @Test("the primary answers while the standby is behind, and while it is down")
  func behind() async throws {
    let pair = try Pair()
    let store = try await pair.store()
    let space = try await store.createSpace(try #require(SpaceName("s")))
    var maker = PacketMaker(1)
    let standby = try PostgresConnection(url: pair.reads)
    try standby.execute("SELECT pg_wal_replay_pause()")
    _ = try await store.ingest(
      [IncomingPacket(maker.packet("a"), byteCount: 1)], into: space.id, now: Self.now)
    #expect(try await Self.head(store, space, after: 0) == 1)
    #expect(try #require(store.standbyPulls) == StandbyPulls(answered: 0, passedOn: 1))
    try pair.standby.stop(.immediate)
    _ = try await store.ingest(
      [IncomingPacket(maker.packet("b"), byteCount: 1)], into: space.id, now: Self.now)
    #expect(try await Self.head(store, space, after: 1) == 2)
    #expect(try #require(store.standbyPulls) == StandbyPulls(answered: 0, passedOn: 2))
    await store.close()
    // A start does not need the standby.
    let again = try await pair.store()
    #expect(try await Self.head(again, space, after: 1) == 2)
    await again.close()
  }

  @Test("a database that is no standby of the primary is refused at the start")
  func stranger() async throws {
    let cluster = try PostgresCluster.shared()
    let (one, other) = (try cluster.createDatabase(), try cluster.createDatabase())
    await #expect {
      _ = try await PostgresStore(PostgresAddresses(one, reads: other), limits: .standard)
    } throws: { error in
      if case .failed(let why) = error as? StoreError {
        why.contains("--read-database")
      } else {
        false
      }
    }
    await #expect {
      _ = try await PostgresStore(PostgresAddresses(one, direct: other), limits: .standard)
    } throws: { error in
      if case .failed(let why) = error as? StoreError {
        why.contains("--listen-url")
      } else {
        false
      }
    }
  }

  @Test("a store whose address names two servers goes on at the promoted one")
  func failover() async throws {
    let pair = try Pair()
    let (first, second) = (
      try #require(URLComponents(string: pair.database)),
      try #require(URLComponents(string: pair.reads))
    )
    let url = """
      postgres://postgres@127.0.0.1:\(try #require(second.port)),127.0.0.1:\
      \(try #require(first.port))\(first.path)
      """
    let store = try await PostgresStore(url: url)
    let space = try await store.createSpace(try #require(SpaceName("s")))
    var maker = PacketMaker(1)
    func push(_ name: String) async throws -> SequenceNumber {
      try await store.ingest(
        [IncomingPacket(maker.packet(name), byteCount: 1)], into: space.id, now: Self.now
      ).head
    }
    #expect(try await push("a") == 1)
    // All that the primary has confirmed has to be at the standby before the primary dies.
    let place = try LogPlace.current(on: try PostgresConnection(url: pair.database))
    let standby = try PostgresConnection(url: pair.reads)
    while try !place.isReached(on: standby) { try await Task.sleep(for: .milliseconds(2)) }
    try pair.primary.stop(.immediate)
    try pair.standby.promote()
    #expect(try await push("b") == 2)
    #expect(try await Self.head(store, space, after: 0) == 2)
    await store.close()
  }
}
