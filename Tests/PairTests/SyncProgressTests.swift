import Ferry
import FerryNetworking
import FerrySyncClient
import FerryTestSupport
import Synchronization
import Testing

/// The progress of a long pull, and the end of the work when the user interrupts it.
@Suite("Progress of a sync", .hangLimit)
struct SyncProgressTests {
  private static let count: Int64 = 12_000

  private func replica(_ server: Server, _ directory: TemporaryDirectory) async throws -> Replica {
    let replica = try await Replica.open(
      directory.file("replica.db").path, transport: CurlTransport(), in: .system)
    try await replica.write { try $0.execute(Device.notes) }
    try await replica.track("notes")
    try await replica.connect(to: server.url, space: Device.space)
    return replica
  }

  private func rows(_ replica: Replica) async throws -> Value {
    try await replica.read { try $0.query("SELECT count(*) FROM notes")[0].values[0] }
  }

  /// Fills the server's space with notes.
  private func fill(_ server: Server) async throws {
    let directory = try TemporaryDirectory()
    let author = try await replica(server, directory)
    try await author.write { database in
      try database.execute(
        """
        WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
        INSERT INTO notes SELECT 'note ' || n, 'body', n FROM numbers
        """, [.integer(Self.count)])
    }
    try await author.sync()
  }

  @Test("changes are counted twice: while they travel, and while they are written")
  func phases() async throws {
    let server = try await Server.start()
    try await fill(server)
    let directory = try TemporaryDirectory()
    let reader = try await replica(server, directory)
    let seen = Mutex<[SyncProgress]>([])
    try await reader.sync { step in seen.withLock { $0.append(step) } }
    let steps = seen.withLock { $0 }
    for phase in [SyncProgress.Phase.pulling, .applying] {
      let completed = steps.filter { $0.phase == phase }.map(\.completed)
      #expect(completed == completed.sorted() && completed.last == Int(Self.count))
      #expect(completed.count > 1, "\(phase)")
    }
    #expect(try await rows(reader) == .integer(Self.count))
  }

  @Test("a sync that continues another one counts all changes that it applies")
  func continued() async throws {
    let server = try await Server.start()
    try await fill(server)
    let directory = try TemporaryDirectory()
    let reader = try await replica(server, directory)
    let work = Mutex<Task<Void, any Error>?>(nil)
    let (isKnown, known) = AsyncStream<Void>.makeStream()
    let pages = Mutex(0)
    let task = Task {
      for await _ in isKnown { break }
      _ = try await reader.sync { step in
        guard step.phase == .pulling else { return }
        // The first page is stored when the second one arrives.
        let count = pages.withLock { count -> Int in
          count += 1
          return count
        }
        if count == 2 { work.withLock { $0?.cancel() } }
      }
    }
    work.withLock { $0 = task }
    known.yield()
    await #expect(throws: ReplicaError.cancelled) { try await task.value }
    let seen = Mutex<[SyncProgress]>([])
    try await reader.sync { step in seen.withLock { $0.append(step) } }
    let applying = seen.withLock { $0 }.filter { $0.phase == .applying }
    #expect(applying.last?.completed == Int(Self.count))
    #expect(applying.allSatisfy { $0.total == Int(Self.count) })
  }

  @Test("a cancelled sync ends while it writes, changes nothing, and loses nothing")
  func cancelled() async throws {
    let server = try await Server.start()
    try await fill(server)
    let directory = try TemporaryDirectory()
    let reader = try await replica(server, directory)
    let work = Mutex<Task<Void, any Error>?>(nil)
    let (isKnown, known) = AsyncStream<Void>.makeStream()
    let task = Task {
      for await _ in isKnown { break }
      _ = try await reader.sync { step in
        if step.phase == .applying { work.withLock { $0?.cancel() } }
      }
    }
    work.withLock { $0 = task }
    known.yield()
    await #expect(throws: ReplicaError.cancelled) { try await task.value }
    #expect(try await rows(reader) == .integer(0))
    try await reader.sync()
    #expect(try await rows(reader) == .integer(Self.count))
  }
}
