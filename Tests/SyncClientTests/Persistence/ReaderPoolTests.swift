import FerryLaboratory
import FerryPlatform
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerryPersistence

/// Reads beside each other, and reads without a waiting caller.
@Suite("Concurrent reads", .hangLimit)
struct ReaderPoolTests {
  /// A statement that runs until it is interrupted.
  private static let endless =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

  private func pool(_ folder: TemporaryDirectory) throws -> ReaderPool {
    let path = folder.file("some.db").path
    let connection = try SQLiteConnection(path: path)
    try connection.execute("CREATE TABLE t(x); INSERT INTO t VALUES (7)")
    return ReaderPool(path: path)
  }

  @Test("a cancelled read ends its running statement, and its connection serves the next read")
  func cancellation() async throws {
    let folder = try TemporaryDirectory(prefix: "ferry-readers")
    let pool = try pool(folder)
    let started = CancellationFlag()
    let read = Task {
      try await pool.read { database in
        started.set()
        return try database.query(Self.endless).count
      }
    }
    try await eventually("the read to start") { started.isSet }
    read.cancel()
    await #expect(throws: CancellationError.self) { try await read.value }
    #expect(try await pool.read { try $0.query("SELECT x FROM t")[0]["x"] } == .integer(7))
  }

  @Test("slow reads do not hold up another one")
  func besideSlowReads() async throws {
    let folder = try TemporaryDirectory(prefix: "ferry-readers")
    let pool = try pool(folder)
    let slow = (1..<ReaderPool.size).map { _ in
      Task { try await pool.read { try $0.query(Self.endless).count } }
    }
    for _ in 0..<20 {
      #expect(try await pool.read { try $0.query("SELECT x FROM t").count } == 1)
    }
    for task in slow { task.cancel() }
    for task in slow { await #expect(throws: CancellationError.self) { try await task.value } }
  }
}
