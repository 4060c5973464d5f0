import FerrySQLite
import FerryTestSupport
import Foundation
import Testing

@Suite("Transactions", .hangLimit)
struct TransactionTests {
  struct Stop: Error {}

  let file: DatabaseFile
  let connection: SQLiteConnection

  init() throws {
    file = try DatabaseFile()
    connection = try file.open()
    try connection.execute("PRAGMA journal_mode=WAL; CREATE TABLE t(a INTEGER PRIMARY KEY)")
  }

  private func count() throws -> Int64? { try connection.integer("SELECT count(*) FROM t") }

  @Test("a body that returns is committed, and its result is returned")
  func commits() throws {
    let answer = try connection.transaction {
      #expect(connection.isInTransaction)
      try connection.execute("INSERT INTO t VALUES (1)")
      return 7
    }
    #expect(answer == 7)
    #expect(!connection.isInTransaction)
    #expect(try file.open().integer("SELECT count(*) FROM t") == 1)
  }

  @Test("a body that throws leaves nothing, and its error is thrown")
  func rollsBack() throws {
    #expect(throws: Stop.self) {
      try connection.transaction {
        try connection.execute("INSERT INTO t VALUES (1)")
        throw Stop()
      }
    }
    #expect(!connection.isInTransaction)
    #expect(try count() == 0)
  }

  @Test("a statement that ended the transaction itself does not hide its error")
  func endedByFailure() throws {
    try connection.execute("INSERT INTO t VALUES (1)")
    let error = failure {
      try connection.transaction {
        try connection.execute("INSERT INTO t VALUES (2)")
        try connection.execute("INSERT OR ROLLBACK INTO t VALUES (1)")
      }
    }
    #expect(error?.isConstraint == true)
    #expect(!connection.isInTransaction)
    #expect(try count() == 1)
  }

  @Test("a transaction within a transaction is refused, and the outer one is not affected")
  func nested() throws {
    try connection.transaction {
      try connection.execute("INSERT INTO t VALUES (1)")
      let error = failure {
        try connection.transaction { try connection.execute("INSERT INTO t VALUES (2)") }
      }
      #expect(error?.message.contains("within a transaction") == true)
      #expect(connection.isInTransaction)
      try connection.execute("INSERT INTO t VALUES (3)")
    }
    #expect(try connection.texts("SELECT a FROM t ORDER BY a") == ["1", "3"])
  }

  @Test("a commit that a deferred foreign key refuses leaves nothing")
  func failedCommit() throws {
    try connection.execute(
      """
      PRAGMA foreign_keys=ON;
      CREATE TABLE c(p REFERENCES t(a) DEFERRABLE INITIALLY DEFERRED)
      """)
    let error = failure {
      try connection.transaction { try connection.execute("INSERT INTO c VALUES (9)") }
    }
    #expect(error?.isForeignKey == true)
    #expect(!connection.isInTransaction)
    #expect(try connection.integer("SELECT count(*) FROM c") == 0)
  }

  @Test("a connection that waits too long for a lock throws, and works when the lock is free")
  func busy() throws {
    let other = try file.open(busyTimeout: .milliseconds(20))
    try connection.transaction {
      try connection.execute("INSERT INTO t VALUES (1)")
      let error = failure { try other.transaction { try other.execute("DELETE FROM t") } }
      #expect(error?.isBusy == true)
      #expect(!other.isInTransaction)
      #expect(try other.integer("SELECT count(*) FROM t") == 0, "readers are not held up")
    }
    try other.transaction { try other.execute("INSERT INTO t VALUES (2)") }
    #expect(try count() == 2)
  }

  @Test("a connection with a timeout gets the lock when it becomes free")
  func patience() async throws {
    let path = file.path
    try connection.execute("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")
    let (signal, isWaiting) = AsyncStream<Void>.makeStream()
    async let later: Void = withCheckedThrowingContinuation { done in
      Thread.detachNewThread {
        done.resume(
          with: Result {
            let other = try SQLiteConnection(path: path, busyTimeout: .hangLimit)
            isWaiting.finish()
            try other.transaction { try other.execute("INSERT INTO t VALUES (2)") }
          })
      }
    }
    for await _ in signal {}
    try connection.execute("COMMIT")
    try await later
    #expect(try count() == 2)
  }

  @Test("a deferred transaction takes no lock before it needs one")
  func deferred() throws {
    let other = try file.open(busyTimeout: .milliseconds(20))
    try connection.transaction(.deferred) {
      try other.execute("INSERT INTO t VALUES (1)")
      #expect(try connection.integer("SELECT count(*) FROM t") == 1)
    }
  }

  @Test("commits and rollbacks are each reported once, and only if they changed something")
  func hooks() throws {
    final class Log { var entries: [Bool] = [] }
    let log = Log()
    connection.onTransactionEnd { log.entries.append($0) }
    try connection.execute("INSERT INTO t VALUES (1)")
    #expect(log.entries == [true])
    try? connection.transaction {
      try connection.execute("INSERT INTO t VALUES (2)")
      throw Stop()
    }
    #expect(log.entries == [true, false])
    try connection.transaction { try connection.execute("INSERT INTO t VALUES (3), (4)") }
    #expect(log.entries == [true, false, true])
    let other = Log()
    connection.onTransactionEnd { other.entries.append($0) }
    try connection.execute("DELETE FROM t")
    #expect(other.entries == [true])
    #expect(log.entries == [true, false, true, true], "each observer is called")
  }
}
