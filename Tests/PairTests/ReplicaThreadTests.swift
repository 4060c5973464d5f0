import Ferry
import FerryNetworking
import FerryPlatform
import FerrySyncClient
import FerryTestSupport
import Synchronization
import Testing

/// Work waiting for a turn on the replica's thread: each turn delays a sync by the user's own
/// statements.
@Suite(.hangLimit)
struct ReplicaThreadTests {
  /// An executor that counts jobs.
  private final class CountingExecutor: WorkExecutor {
    private let thread: ThreadExecutor
    private let count = Mutex(0)

    init(_ name: String) {
      thread = ThreadExecutor(name: name)
    }

    var runs: Int { count.withLock { $0 } }

    func enqueue(_ job: consuming ExecutorJob) { thread.enqueue(job) }

    func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
      count.withLock { $0 += 1 }
      return try await thread.run(body)
    }
  }

  /// The executors made so far, by name.
  private final class Executors: Sendable {
    private let made = Mutex<[String: CountingExecutor]>([:])

    subscript(name: String) -> CountingExecutor? { made.withLock { $0[name] } }

    func make(_ name: String) -> CountingExecutor {
      let executor = CountingExecutor(name)
      made.withLock { $0[name] = executor }
      return executor
    }
  }

  @Test("a sync of one packet takes at most three turns on the replica's thread")
  func turns() async throws {
    let server = try await Server.start()
    let directory = try TemporaryDirectory()
    let executors = Executors()
    var surroundings = ReplicaSurroundings.system
    surroundings.makeExecutor = { executors.make($0) }
    let replica = try await Replica.open(
      directory.file("replica.db").path, transport: CurlTransport(), in: surroundings)
    try await replica.write { try $0.execute(Device.notes) }
    try await replica.track("notes")
    try await replica.connect(to: server.url, space: Device.space)
    let thread = try #require(executors["ferry-replica"])
    try await replica.sync()
    try await replica.write { try $0.execute("INSERT INTO notes VALUES ('a', 'x', 1)") }
    let before = thread.runs
    let report = try await replica.sync()
    #expect(report.pushed == 1 && report.left == 0)
    #expect(thread.runs - before <= 3, "\(thread.runs - before) turns")
    let idle = thread.runs
    #expect(try await replica.sync().summary == nil)
    #expect(thread.runs - idle <= 2, "\(thread.runs - idle) turns")
  }
}
