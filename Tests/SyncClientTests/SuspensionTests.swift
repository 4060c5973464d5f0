import FerryNetworking
import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncClient

/// A replica whose process may be stopped at any time.
@Suite("Suspending a replica", .hangLimit)
struct SuspensionTests {
  /// A statement that runs until it is interrupted.
  private static let endless =
    """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    INSERT INTO notes(id) SELECT 'n' || i FROM n
    """

  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private var path: String { directory.file("replica.db").path }

  private static func add(_ id: String) -> @Sendable (Database) throws -> Void {
    { _ = try $0.execute("INSERT INTO notes(id) VALUES (?)", [.text(id)]) }
  }

  private static let ids: @Sendable (Database) throws -> [Value] = {
    try $0.query("SELECT id FROM notes ORDER BY id").map { $0.values[0] }
  }

  /// Checks that no connection holds a lock, as another process sees it.
  private func expectUnlocked(sourceLocation: SourceLocation = #_sourceLocation) async throws {
    let other = try SQLiteConnection(path: path, busyTimeout: .zero)
    // An EXCLUSIVE transaction waits for a writer; the checkpoint waits for readers as well.
    try other.transaction { try other.execute("CREATE TABLE IF NOT EXISTS probe(x)") }
    let isBlocked = try other.first("PRAGMA wal_checkpoint(TRUNCATE)") { $0.int64(0) }
    #expect(isBlocked == 0, sourceLocation: sourceLocation)
    try await SyncLock.acquire(path: path, patience: .zero).release()
  }

  @Test("a long write ends, is rolled back, and works after the resumption")
  func longWrite() async throws {
    let replica = try await ScriptedServer().replica(in: directory)
    try await replica.write(Self.add("a"))
    let (begins, begun) = AsyncStream<Void>.makeStream()
    let write = Task {
      try await replica.write { database in
        try Self.add("b")(database)
        begun.yield()
        try database.execute(Self.endless)
      }
    }
    var next = begins.makeAsyncIterator()
    await next.next()
    await replica.suspend()
    try await expectUnlocked()
    await #expect(throws: ReplicaError.suspended) { try await write.value }
    let calls: [@Sendable () async throws -> Void] = [
      { try await replica.write(Self.add("c")) },
      { _ = try await replica.read(Self.ids) },
      { _ = try await replica.writeInBulk { _ in } },
      { _ = try await replica.sync() },
      { _ = try await replica.status() },
    ]
    for call in calls { await #expect(throws: ReplicaError.suspended) { try await call() } }
    await replica.suspend()
    replica.resume()
    try await replica.write(Self.add("c"))
    #expect(try await replica.read(Self.ids) == ["a", "c"])
    #expect(try await replica.operations.pending().map(\.operation.key.record) == ["a", "c"])
    #expect(try await replica.sync().pushed == 2)
  }

  @Test("a write stores nothing even if its closure catches the error, or the replica resumes")
  func caught() async throws {
    let replica = try await ScriptedServer().replica(in: directory)
    let gate = replica.thread.gate
    await #expect(throws: ReplicaError.suspended) {
      try await replica.write { database in
        try Self.add("a")(database)
        gate.suspend()
        #expect(throws: ReplicaError.suspended) { try Self.add("b")(database) }
        gate.resume()
        #expect(throws: ReplicaError.suspended) { try Self.add("c")(database) }
      }
    }
    await #expect(throws: ReplicaError.suspended) {
      try await replica.writeInBulk { writer in
        try writer.transaction(Self.add("d"))
        gate.suspend()
        #expect(throws: (any Error).self) { try writer.transaction(Self.add("e")) }
        try writer.transaction { _ in }
      }
    }
    gate.resume()
    #expect(try await replica.read(Self.ids) == ["d"], "earlier transactions of a bulk stay")
    #expect(try await replica.status().pending == 1)
  }

  @Test("a long read ends, and its connection serves the next read")
  func longRead() async throws {
    let replica = try await ScriptedServer().replica(in: directory)
    let (begins, begun) = AsyncStream<Void>.makeStream()
    let read = Task {
      try await replica.read { database in
        begun.yield()
        return try database.query(
          "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
        ).count
      }
    }
    var next = begins.makeAsyncIterator()
    await next.next()
    await replica.suspend()
    await #expect(throws: ReplicaError.suspended) { try await read.value }
    try await expectUnlocked()
    replica.resume()
    #expect(try await replica.read(Self.ids) == [])
  }

  @Test("a sync ends as cancelled and frees its lock; the next one sends its operations")
  func syncing() async throws {
    let server = ScriptedServer()
    try await server.replica(in: directory).close()
    let waiting = WaitingServer()
    let replica = try await Replica.open(path, transport: waiting)
    try await replica.write(Self.add("a"))
    let sync = Task { try await replica.sync() }
    await waiting.isAsked()
    await replica.suspend()
    try await expectUnlocked()
    await #expect(throws: ReplicaError.cancelled) { try await sync.value }
    await replica.close()
    let again = try await Replica.open(path, transport: server)
    #expect(try await again.sync().pushed == 1)
  }

  @Test("a watch and a live query go on after the resumption")
  func following() async throws {
    let server = ScriptedServer()
    let replica = try await server.watchedReplica(in: directory)
    let (synced, sync) = AsyncStream<Int>.makeStream()
    let watch = Task {
      try await replica.watch(onEvent: {
        if case .synced(let report) = $0 { sync.yield(report.pushed) }
      })
    }
    var syncs = synced.makeAsyncIterator()
    #expect(await syncs.next() == 0)
    var rows = replica.observe(Self.ids).makeAsyncIterator()
    #expect(try await rows.next() == [])
    await replica.suspend()
    try await expectUnlocked()
    let late = replica.observe(Self.ids)
    replica.resume()
    try await replica.write(Self.add("a"))
    #expect(try await rows.next() == ["a"])
    for try await ids in late where ids == ["a"] { break }
    while server.operations.isEmpty { _ = await syncs.next() }
    await replica.suspend()
    await replica.close()
    await #expect(throws: ReplicaError.closed) { try await watch.value }
    #expect(try await rows.next() == nil)
  }
}
