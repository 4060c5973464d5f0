import CFerrySQLite
import FerryPersistence
import FerryPlatform
import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerrySQLite
@testable import FerrySyncClient

/// Many replicas on few threads, with the memory of few.
@Suite("Replicas that share threads and memory", .hangLimit)
struct SharedReplicaTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func open(_ name: String, _ sharing: ReplicaSharing) async throws -> Replica {
    try await sharing.open(
      directory.file("\(name).db").path,
      of: ServerAddress(checking: "http://127.0.0.1:1", space: name), in: .system)
  }

  private static let rows: @Sendable (Database) throws -> [Value] = {
    try $0.query("SELECT body FROM notes ORDER BY id").map { $0.values[0] }
  }

  @Test("an executor on shared threads runs one job at a time, in order")
  func order() async throws {
    let threads = SharedThreads(name: "shared", count: 3)
    let executors = (0..<5).map { _ in threads.makeExecutor() }
    let lanes = (0..<5).map { _ in Jobs() }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (executor, jobs) in zip(executors, lanes) {
        group.addTask {
          for number in 0..<200 { try await executor.run { jobs.add(number) } }
        }
      }
      try await group.waitForAll()
    }
    for jobs in lanes {
      #expect(jobs.numbers == Array(0..<200))
      #expect(!jobs.overlapped)
    }
  }

  @Test("a blocked executor holds up no other one, as long as a thread is free")
  func blocked() async throws {
    let threads = SharedThreads(name: "shared", count: 2)
    let (first, second) = (threads.makeExecutor(), threads.makeExecutor())
    let (entered, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let blocked = Task {
      try await first.run {
        entered.signal()
        gate.wait()
      }
    }
    try await second.run { entered.wait() }
    #expect(try await second.run { 7 } == 7)
    gate.signal()
    try await blocked.value
  }

  @Test("replicas without the memory of their files keep rows, operations and reads")
  func memory() async throws {
    let sharing = ReplicaSharing(threads: 2, warmMax: 1)
    var replicas: [Replica] = []
    for name in ["a", "b", "c"] {
      let replica = try await open(name, sharing)
      try await replica.write {
        try $0.execute("CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
      }
      try await replica.track("notes")
      replicas.append(replica)
    }
    for number in 0..<20 {
      for (place, replica) in replicas.enumerated() {
        try await replica.write {
          try $0.execute(
            "INSERT INTO notes VALUES (?, ?)",
            [.text("\(100 + number)"), .text("\(place)-\(number)")])
        }
        let rows = try await replica.read(Self.rows)
        #expect(rows == (0...number).map { .text("\(place)-\($0)") })
      }
    }
    for replica in replicas {
      #expect(try await replica.status().pending == 20)
      await replica.close()
    }
    let again = try await open("b", sharing)
    #expect(try await again.read(Self.rows).count == 20)
    await again.close()
  }

  @Test("the coldest file releases the memory")
  func coldest() {
    final class File {}
    let warm = WarmFiles(max: 2)
    let released = Mutex<[Int]>([])
    let files = [File(), File(), File()]
    let use = { (place: Int) in
      warm.record(files[place]) { released.withLock { $0.append(place) } }
    }
    for place in [0, 1, 0, 0, 2] { use(place) }
    #expect(released.withLock { $0 } == [1])
    warm.forget(files[0])
    use(1)
    #expect(released.withLock { $0 } == [1])
    use(0)
    #expect(released.withLock { $0 } == [1, 2])
  }

  @Test("a connection without memory reads the schema again")
  func schema() throws {
    let connection = try SQLiteConnection(path: directory.file("schema.db").path)
    for number in 0..<20 {
      try connection.execute("CREATE TABLE t\(number)(id INTEGER PRIMARY KEY, body TEXT)")
    }
    try connection.run("INSERT INTO t7 VALUES (?, ?)", Int64(1), "one")
    let before = Self.used(connection)
    connection.releaseMemory()
    #expect(Self.used(connection) < before / 4)
    #expect(try connection.first("SELECT body FROM t7") { $0.text(0) } == "one")
    try connection.transaction {
      try connection.run("UPDATE t7 SET body = ?", "two")
      // Not within a transaction.
      connection.releaseMemory()
    }
    #expect(try connection.first("SELECT body FROM t7") { $0.text(0) } == "two")
  }

  /// Returns the bytes of a connection's schema, statements and pages.
  private static func used(_ connection: SQLiteConnection) -> Int32 {
    [SQLITE_DBSTATUS_SCHEMA_USED, SQLITE_DBSTATUS_STMT_USED, SQLITE_DBSTATUS_CACHE_USED]
      .reduce(0) { sum, kind in
        var (current, highest): (Int32, Int32) = (0, 0)
        sqlite3_db_status(connection.handle, kind, &current, &highest, 0)
        return sum + current
      }
  }
}

/// The jobs that ran on an executor, in order.
private final class Jobs: Sendable {
  private let state = Mutex((numbers: [Int](), isRunning: false, overlapped: false))

  var numbers: [Int] { state.withLock { $0.numbers } }
  /// True if a job began while another one ran.
  var overlapped: Bool { state.withLock { $0.overlapped } }

  func add(_ number: Int) {
    state.withLock {
      $0.overlapped = $0.overlapped || $0.isRunning
      $0.isRunning = true
      $0.numbers.append(number)
    }
    state.withLock { $0.isRunning = false }
  }
}
