import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

/// Stores whose tables Citus has on several servers.
@Suite(
  "A store on Citus", .serialized, .hangLimit,
  .enabled(if: CitusSchema.database != nil, "FERRY_TEST_CITUS names no coordinator of Citus"))
struct CitusTests {
  /// One distributed store for all contracts.
  private static let shared = Task {
    let schema = try CitusSchema("contracts")
    _ = try await PostgresStore.distribute(schema.addresses)
    return schema
  }

  @Test("Citus:", arguments: StoreContract.all)
  func contract(contract: StoreContract) async throws {
    let schema = try await Self.shared.value
    try schema.clear()
    try await contract.check(
      StoreUnderTest(isShared: true) { limits, quotas in
        try await PostgresStore(schema.addresses, limits: limits, quotas: quotas)
      })
  }

  @Test("Citus, by way of a worker:", arguments: StoreContract.all)
  func worker(contract: StoreContract) async throws {
    let schema = try await Self.shared.value
    try schema.clear()
    let addresses = try schema.addresses(ofWorkerAt: nil)
    try await contract.check(
      StoreUnderTest(isShared: true) { limits, quotas in
        try await PostgresStore(addresses, limits: limits, quotas: quotas)
      })
  }

  @Test("a node with a worker and one without hear of each other's moves, also without the worker")
  func nodes() async throws {
    let schema = try CitusSchema("nodes")
    _ = try await PostgresStore.distribute(schema.addresses)
    let proxy = try TCPProxy(to: try CitusSchema.worker().port)
    let near = try await PostgresStore(
      try schema.addresses(ofWorkerAt: proxy.port), limits: .standard,
      sweepInterval: .seconds(1 << 20))
    let far = try await PostgresStore(
      schema.addresses, limits: .standard, sweepInterval: .seconds(1 << 20))
    let space = try await near.createSpace(try #require(SpaceName("notes")))
    let stores = [near, far]
    for store in stores { store.heads.watch(space.id) }
    var moves = stores.map { $0.heads.stream().makeAsyncIterator() }
    var maker = PacketMaker(1)
    var expected: SequenceNumber = 0
    func push(to store: PostgresStore, _ name: String) async throws {
      expected += 1
      let packet = IncomingPacket(maker.packet(name), byteCount: 9)
      #expect(try await store.ingest([packet], into: space.id, now: 1).head == expected)
      for listener in stores.indices {
        while let move = await moves[listener].next(), move.head < expected {}
        let page = try await Self.page(of: space, in: stores[listener])
        #expect(try PageReader.head(of: page).head == expected)
      }
    }
    proxy.cutAll()
    try await eventually("the connections to end") { proxy.connectionCount == 0 }
    try await push(to: near, "a")
    try await push(to: far, "b")
    #expect(proxy.connectionCount > 0, "the packet went through the worker")
    proxy.refuse()
    proxy.cutAll()
    try await push(to: near, "c")
    try await push(to: far, "d")
    for store in stores { await store.close() }
    try schema.remove()
  }

  @Test(
    "a worker that is none of the coordinator's is refused, and one of a store that is not distributed"
  )
  func stranger() async throws {
    let schema = try CitusSchema("stranger")
    func expectRefusal(_ addresses: PostgresAddresses) async {
      await #expect {
        _ = try await PostgresStore(addresses, limits: .standard)
      } throws: { error in
        guard case .failed(let why) = error as? StoreError else { return false }
        return why.contains("--worker-database")
      }
    }
    await expectRefusal(try schema.addresses(ofWorkerAt: nil))
    _ = try await PostgresStore.distribute(schema.addresses)
    let stranger = try PostgresCluster.shared().createDatabase()
    let withoutSchema = try schema.addresses(ofWorkerAt: nil).worker?.replacing(
      "search_path", with: "application_name")
    for url in [schema.url, stranger, try #require(withoutSchema)] {
      await expectRefusal(PostgresAddresses(schema.url, worker: url))
    }
    try schema.remove()
  }

  @Test("a packet goes to the coordinator if the worker is silent")
  func silent() async throws {
    let (schema, proxy, store, space) = try await Self.behindProxy("silent")
    proxy.set(LinkConditions(requests: .stalled, answers: .stalled))
    let before = try #require(store.counts.workerRequests)
    let packet = IncomingPacket(Packet.serviceSample(1), byteCount: 9)
    #expect(try await store.ingest([packet], into: space.id, now: 1).head > 0)
    #expect(store.counts.workerRequests?.passedOn == before.passedOn + 1)
    proxy.cutAll()
    await store.close()
    try schema.remove()
  }

  @Test("a worker's address that leads to another server later gets no packet")
  func redirected() async throws {
    let (schema, proxy, store, space) = try await Self.behindProxy("redirected")
    var maker = PacketMaker(1)
    func push(_ name: String, counts expected: SharedWork) async throws {
      let before = try #require(store.counts.workerRequests)
      let packet = IncomingPacket(maker.packet(name), byteCount: 9)
      _ = try await store.ingest([packet], into: space.id, now: 1)
      let work = try #require(store.counts.workerRequests)
      #expect(work.done - before.done == expected.done)
      #expect(work.passedOn - before.passedOn == expected.passedOn)
    }
    try await push("a", counts: SharedWork(done: 1))
    // The coordinator has the same tables and roles, and is another cluster.
    proxy.retarget(to: try #require(UInt16(exactly: URLComponents(string: schema.url)?.port ?? 0)))
    proxy.cutAll()
    try await eventually("the connections to end") { proxy.connectionCount == 0 }
    try await push("b", counts: SharedWork(passedOn: 1))
    await store.close()
    try schema.remove()
  }

  @Test("a store with data keeps it when it is distributed, and further calls change nothing")
  func data() async throws {
    let schema = try CitusSchema("data")
    let name = try #require(SpaceName("notes"))
    var maker = PacketMaker(1)
    let first = IncomingPacket(maker.packet("a", "b", "c"), byteCount: 9)
    let plain = try await PostgresStore(schema.addresses, limits: .standard)
    #expect(!plain.isDistributed)
    let space = try await plain.createSpace(name)
    _ = try await plain.ingest([first], into: space.id, now: 1)
    _ = try await plain.foldDigests(in: space.id)
    let before = try await Self.page(of: space, in: plain)
    await plain.close()

    let done = try await PostgresStore.distribute(schema.addresses)
    let count = PostgresDistribution.columns.count + PostgresDistribution.copied.count
    #expect(done.tables == count && done.workers > 0)
    #expect(
      try await PostgresStore.distribute(schema.addresses)
        == StoreDistribution(workers: done.workers, tables: 0))

    let store = try await PostgresStore(schema.addresses, limits: .standard)
    #expect(store.isDistributed)
    #expect(try await store.space(named: name)?.id == space.id)
    #expect(try await Self.page(of: space, in: store) == before)
    let again = try await store.ingest([first], into: space.id, now: 2)
    #expect(again.head == 3)
    let second = IncomingPacket(maker.packet("a", "d"), byteCount: 9)
    #expect(try await store.ingest([second], into: space.id, now: 3).head == 5)
    #expect(try await store.foldDigests(in: space.id) == 5)
    #expect(try await store.reclaim() == .done)
    await store.close()
    try schema.remove()
  }

  /// Makes a distributed store whose worker is behind a proxy, with a space.
  private static func behindProxy(
    _ name: String
  ) async throws -> (CitusSchema, TCPProxy, PostgresStore, SpaceSummary) {
    let schema = try CitusSchema(name)
    _ = try await PostgresStore.distribute(schema.addresses)
    let proxy = try TCPProxy(to: try CitusSchema.worker().port)
    let store = try await PostgresStore(
      try schema.addresses(ofWorkerAt: proxy.port), limits: .standard)
    return (schema, proxy, store, try await store.createSpace(try #require(SpaceName("notes"))))
  }

  /// Returns the first page of a new device.
  private static func page(
    of space: SpaceSummary, in store: any SyncStore
  ) async throws -> [UInt8] {
    try await store.changes(
      in: space.id, PullRequest(cursor: nil, limit: 100, byteLimit: 1 << 20, device: nil), now: 1
    ).get()
  }

  @Test("a store that a server uses is not distributed")
  func inUse() async throws {
    let schema = try CitusSchema("used")
    let store = try await PostgresStore(schema.addresses, limits: .standard)
    let fault = await #expect(throws: DistributionFault.self) {
      try await PostgresStore.distribute(schema.addresses)
    }
    guard case .inUse = fault else {
      Issue.record("\(String(describing: fault))")
      return
    }
    await store.close()
    let other = try await PostgresStore(schema.addresses, limits: .standard)
    #expect(!other.isDistributed)
    await other.close()
    try schema.remove()
  }

  @Test("a coordinator without workers is refused")
  func noWorkers() async throws {
    let administration = try #require(CitusSchema.database)
    let name = "ferry_test_alone"
    var parts = try #require(URLComponents(string: administration))
    parts.path = "/\(name)"
    let url = try #require(parts.string)
    try PostgresConnection(url: administration).execute("DROP DATABASE IF EXISTS \(name)")
    try PostgresConnection(url: administration).execute("CREATE DATABASE \(name)")
    try PostgresConnection(url: url).execute("CREATE EXTENSION citus")
    await #expect(throws: DistributionFault.noWorkers) {
      try await PostgresStore.distribute(PostgresAddresses(url))
    }
    try PostgresConnection(url: administration).execute("DROP DATABASE \(name) WITH (FORCE)")
  }
}

/// Errors of distributing without Citus.
@Suite("Distributing a store without Citus", .hangLimit)
struct DistributionFaultTests {
  @Test("a database without the extension is refused, and its store stays as it was")
  func noExtension() async throws {
    let url = try PostgresCluster.shared().createDatabase()
    await #expect(throws: DistributionFault.noExtension) {
      try await PostgresStore.distribute(PostgresAddresses(url))
    }
    let store = try await PostgresStore(url: url)
    #expect(!store.isDistributed)
    await store.close()
  }
}
