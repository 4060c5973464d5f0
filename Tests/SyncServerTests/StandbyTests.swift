import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

/// A store over a primary and a hot standby: real servers, with streaming replication.
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
    // The standby of a slow disk is behind each commit, and answers later.
    var pulls = 60
    try await eventually("the standby to serve a pull") {
      if try #require(store.counts.standbyPulls).done > 0 { return true }
      #expect(try await Self.head(store, space, after: 0) == 60)
      pulls += 1
      return false
    }
    let counts = try #require(store.counts.standbyPulls)
    #expect(counts.done + counts.passedOn == pulls)
    await store.close()
    // Of several servers, the standby serves pulls.
    let both = try Self.url(of: [pair.database, pair.reads])
    let other = try await PostgresStore(
      PostgresAddresses(pair.database, reads: both), limits: .standard)
    try await eventually("the standby to serve a pull") {
      if try #require(other.counts.standbyPulls).done > 0 { return true }
      #expect(try await Self.head(other, space, after: 0) == 60)
      return false
    }
    #expect(try #require(other.counts.standbyPulls).done == 1)
    await other.close()
  }

  /// Returns the address of one database on several servers.
  private static func url(of urls: [String]) throws -> String {
    let parts = try urls.map { url in try #require(URLComponents(string: url)) }
    let hosts = try parts.map { part in "127.0.0.1:\(try #require(part.port))" }
    return "postgres://postgres@\(hosts.joined(separator: ","))\(parts[0].path)"
  }

  @Test("a pull after a commit has the commit, though one of two standbys is behind")
  func several() async throws {
    let pair = try Pair()
    let late = try pair.primary.makeStandby()
    let lateURL = try late.url(of: pair.database)
    let ports = try [pair.reads, lateURL].map { url in
      UInt16(try #require(URLComponents(string: url)?.port))
    }
    // Both have one address. No connection is made before the first pull.
    let proxy = try TCPProxy(to: ports[0])
    proxy.refuse()
    let path = try #require(URLComponents(string: pair.database)?.path)
    let reads = "postgres://postgres@127.0.0.1:\(proxy.port)\(path)"
    let store = try await PostgresStore(
      PostgresAddresses(pair.database, reads: reads), limits: .standard, connections: 2)
    proxy.refuse(false)
    let space = try await store.createSpace(try #require(SpaceName("s")))
    var maker = PacketMaker(1)
    func push(_ name: String) async throws {
      _ = try await store.ingest(
        [IncomingPacket(maker.packet(name), byteCount: 1)], into: space.id, now: Self.now)
    }
    try await push("a")
    let place = try LogPlace.current(on: try PostgresConnection(url: pair.database))
    let standby = try PostgresConnection(url: lateURL)
    try await eventually("the standby to follow") {
      try place.progress(on: standby) == .reached
    }
    #expect(try await Self.head(store, space, after: 0) == 1)
    try standby.execute("SELECT pg_wal_replay_pause()")
    proxy.retarget(to: ports[1])
    try await push("b")
    let heads = try await withThrowingTaskGroup(of: SequenceNumber.self) { group in
      for _ in 0..<32 { group.addTask { try await Self.head(store, space, after: 0) } }
      return try await group.reduce(into: [SequenceNumber]()) { $0.append($1) }
    }
    #expect(heads == [SequenceNumber](repeating: 2, count: 32))
    await store.close()
    proxy.cutAll()
    try late.stop(.immediate)
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
    #expect(try #require(store.counts.standbyPulls) == SharedWork(done: 0, passedOn: 1))
    try pair.standby.stop(.immediate)
    _ = try await store.ingest(
      [IncomingPacket(maker.packet("b"), byteCount: 1)], into: space.id, now: Self.now)
    #expect(try await Self.head(store, space, after: 1) == 2)
    #expect(try #require(store.counts.standbyPulls) == SharedWork(done: 0, passedOn: 2))
    await store.close()
    // A start does not need the standby.
    let again = try await pair.store()
    #expect(try await Self.head(again, space, after: 1) == 2)
    await again.close()
  }

  @Test("a database that is no standby of the primary, or is itself, is refused at the start")
  func stranger() async throws {
    let cluster = try PostgresCluster.shared()
    let (one, other) = (try cluster.createDatabase(), try cluster.createDatabase())
    for reads in [other, one] {
      await #expect {
        _ = try await PostgresStore(PostgresAddresses(one, reads: reads), limits: .standard)
      } throws: { error in
        if case .failed(let why) = error as? StoreError {
          why.contains("--read-database")
        } else {
          false
        }
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
    let url = try Self.url(of: [pair.reads, pair.database])
    let store = try await PostgresStore(url: url)
    let space = try await store.createSpace(try #require(SpaceName("s")))
    var maker = PacketMaker(1)
    func push(_ name: String) async throws -> SequenceNumber {
      try await store.ingest(
        [IncomingPacket(maker.packet(name), byteCount: 1)], into: space.id, now: Self.now
      ).head
    }
    #expect(try await push("a") == 1)
    // Everything confirmed by the primary has to be at the standby before the primary dies.
    let place = try LogPlace.current(on: try PostgresConnection(url: pair.database))
    let standby = try PostgresConnection(url: pair.reads)
    try await eventually("the standby to follow") {
      try place.progress(on: standby) == .reached
    }
    try pair.primary.stop(.immediate)
    try pair.standby.promote()
    #expect(try await push("b") == 2)
    #expect(try await Self.head(store, space, after: 0) == 2)
    await store.close()
    // A start does not fail because the standby is the primary now.
    let again = try await PostgresStore(
      PostgresAddresses(url, reads: pair.reads), limits: .standard)
    #expect(try await Self.head(again, space, after: 0) == 2)
    #expect(try #require(again.counts.standbyPulls) == SharedWork(done: 0, passedOn: 1))
    await again.close()
  }
}
