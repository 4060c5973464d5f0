import FerryNetworking
import FerryPersistence
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerrySyncClient

/// The end of a replica's work on the file.
@Suite("Closing a replica", .hangLimit)
struct ClosingTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private var path: String { directory.file("replica.db").path }

  /// Returns the names of the replica's files.
  private func files() throws -> Set<String> {
    Set(try FileManager.default.contentsOfDirectory(atPath: directory.url.path))
  }

  private func add(_ replica: Replica, _ id: String) async throws {
    try await replica.write { _ = try $0.execute("INSERT INTO notes(id) VALUES (?)", [.text(id)]) }
  }

  private static let ids: @Sendable (Database) throws -> [Value] = {
    try $0.query("SELECT id FROM notes ORDER BY id").map { $0.values[0] }
  }

  @Test("a closed replica leaves one whole file, and every later call fails")
  func closed() async throws {
    let replica = try await ScriptedServer().replica(in: directory)
    try await add(replica, "a")
    #expect(try await replica.read(Self.ids) == ["a"])
    #expect(try files().contains("replica.db-wal"))
    await replica.close()
    #expect(try files().isDisjoint(with: ["replica.db-wal", "replica.db-shm"]))
    let calls: [@Sendable () async throws -> Void] = [
      { try await add(replica, "b") },
      { _ = try await replica.read(Self.ids) },
      { _ = try await replica.writeInBulk { _ in } },
      { _ = try await replica.sync() },
      { try await replica.watch() },
      { _ = try await replica.verify() },
      { _ = try await replica.status() },
      { try await replica.track("other") },
      { for try await _ in replica.observe(Self.ids) {} },
      { for try await _ in replica.conflictUpdates() {} },
    ]
    for call in calls { await #expect(throws: ReplicaError.closed) { try await call() } }
    for await activity in replica.activity() { #expect(activity.phase == .idle) }
    await replica.close()
    replica.resume()
    await #expect(throws: ReplicaError.closed) { try await replica.status() }
    let again = try await Replica.open(path)
    #expect(try await again.read(Self.ids) == ["a"])
    #expect(try await again.status().pending == 1)
  }

  @Test("writes and reads that have begun or wait in the queue end first")
  func queued() async throws {
    let executors = Mutex<[CountingExecutor]>([])
    var surroundings = ReplicaSurroundings.system
    surroundings.makeExecutor = { name in
      let executor = CountingExecutor(name)
      executors.withLock { $0.append(executor) }
      return executor
    }
    let replica = try await Replica.open(path, transport: ScriptedServer(), in: surroundings)
    try await replica.write { try $0.execute("CREATE TABLE notes(id TEXT PRIMARY KEY)") }
    let writer = try #require(executors.withLock { $0.first })
    let before = writer.queued
    let release = DispatchSemaphore(value: 0)
    let (begins, begun) = AsyncStream<Void>.makeStream()
    let reading = Task {
      try await replica.read { database in
        begun.yield()
        release.wait()
        return try Self.ids(database).count
      }
    }
    let writing = (1...5).map { number in
      Task {
        try await replica.write { database in
          if number == 1 { release.wait() }
          try database.execute("INSERT INTO notes VALUES ('\(number)')")
        }
      }
    }
    var next = begins.makeAsyncIterator()
    await next.next()
    try await eventually("five writes") { writer.queued >= before + 5 }
    let closing = Task { await replica.close() }
    for _ in 1...2 { release.signal() }
    await closing.value
    for write in writing { _ = try await write.value }
    #expect(try await (0...5).contains(reading.value))
    #expect(try files() == ["replica.db"])
    let again = try await Replica.open(path)
    #expect(try await again.read(Self.ids) == ["1", "2", "3", "4", "5"])
  }

  @Test("a sync under way is cancelled, and the next one sends its operations")
  func syncing() async throws {
    let server = ScriptedServer()
    try await server.replica(in: directory).close()
    let waiting = WaitingServer()
    let replica = try await Replica.open(path, transport: waiting)
    try await add(replica, "a")
    let sync = Task { try await replica.sync() }
    await waiting.isAsked()
    await replica.close()
    await #expect(throws: ReplicaError.cancelled) { try await sync.value }
    #expect(try files().isDisjoint(with: ["replica.db-wal", "replica.db-shm"]))
    let again = try await Replica.open(path, transport: server)
    #expect(try await again.status().pending == 1)
    #expect(try await again.log().allSatisfy { $0.event != "error" })
    #expect(try await again.sync().pushed == 1)
    #expect(server.operations.map(\.key.record) == ["a"])
  }

  @Test("a watch ends with the reason, and streams end without an error")
  func following() async throws {
    let replica = try await ScriptedServer().watchedReplica(in: directory)
    let (synced, sync) = AsyncStream<Void>.makeStream()
    let watch = Task { try await replica.watch(onEvent: { if case .synced = $0 { sync.yield() } }) }
    var next = synced.makeAsyncIterator()
    await next.next()
    var rows = replica.observe(Self.ids).makeAsyncIterator()
    #expect(try await rows.next() == [])
    var activity = replica.activity().makeAsyncIterator()
    #expect(await activity.next() != nil)
    let updates = replica.conflictUpdates()
    let conflicts = Task { for try await _ in updates {} }
    try await eventually("the listener") { replica.conflictListeners.oldest != nil }
    await replica.close()
    await #expect(throws: ReplicaError.closed) { try await watch.value }
    while try await rows.next() != nil {}
    while await activity.next() != nil {}
    try await conflicts.value
  }

  @Test("another replica object on the same file keeps the log, and goes on")
  func shared() async throws {
    let replica = try await ScriptedServer().replica(in: directory)
    let other = try await Replica.open(path)
    try await add(replica, "a")
    await replica.close()
    #expect(try files().contains("replica.db-wal"))
    try await add(other, "b")
    #expect(try await other.read(Self.ids) == ["a", "b"])
    await other.close()
    #expect(try files().isDisjoint(with: ["replica.db-wal", "replica.db-shm"]))
  }
}
