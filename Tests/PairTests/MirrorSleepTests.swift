import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Programs' writes while a mirror sleeps, falls asleep, and cannot sleep.
@Suite("Mirrors that sleep", .hangLimit)
struct MirrorSleepTests {
  /// Locks of mirrors in the stage's database; an asleep one has it alone.
  private static let locks = """
    SELECT mode FROM pg_locks WHERE locktype = 'advisory' AND classid = \(0x6665_7279)
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    """
  private static let asleep = [["ExclusiveLock"]]

  @Test("a write comes through while the mirror sleeps, wakes, and is kept awake by a program")
  func sleeps() async throws {
    let stage = try await MirrorTests.Stage.make()
    let run = try stage.run()
    try await stage.eventuallyRows(Self.locks, Self.asleep)
    try stage.sql("INSERT INTO app.lists VALUES ('a', 'asleep')")
    try await stage.quiet()
    // It is awake now, or falls asleep again.
    for number in 1...20 {
      try stage.sql("INSERT INTO app.lists VALUES ('\(number)', 'awake')")
      try await stage.quiet()
    }
    let (first, second) = (
      try PostgresConnection(url: stage.database), try PostgresConnection(url: stage.database)
    )
    // One of them sees an older state than the other.
    try first.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM app.lists")
    try second.execute("BEGIN; INSERT INTO app.lists VALUES ('b', 'open')")
    try stage.sql("INSERT INTO app.lists VALUES ('c', 'between')")
    try await stage.quiet()
    try first.execute("INSERT INTO app.lists VALUES ('d', 'repeatable'); COMMIT")
    try await stage.quiet()
    try second.execute("COMMIT")
    try await stage.quiet()
    try await stage.expectEqual("SELECT id, name FROM lists ORDER BY id")
    try await stage.eventuallyRows(Self.locks, Self.asleep)
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  @Test("after a kill and after a break of the connections nobody waits for a notification")
  func ends() async throws {
    let stage = try await MirrorTests.Stage.make()
    var run = try stage.run()
    try await stage.eventuallyRows(Self.locks, Self.asleep)
    run.send(SIGKILL)
    _ = try await run.exitStatus()
    try await stage.eventuallyRows(Self.locks, [])
    try stage.sql("INSERT INTO app.lists VALUES ('a', 'alone')")
    run = try stage.run()
    try await stage.quiet()
    try await stage.eventuallyRows(Self.locks, Self.asleep)
    try PostgresCluster.disconnectAll(from: stage.database)
    try stage.sql("INSERT INTO app.lists VALUES ('b', 'disconnected')")
    try await stage.quiet()
    try await stage.expectEqual("SELECT id, name FROM lists ORDER BY id")
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  @Test("a program prepares its transactions, whether the mirror runs or not")
  func prepared() async throws {
    let cluster = try PostgresCluster()
    try PostgresConnection(url: try cluster.createDatabase()).execute(
      "ALTER SYSTEM SET max_prepared_transactions = 2")
    try cluster.restart()
    let stage = try await MirrorTests.Stage.make(in: cluster)
    try stage.sql("BEGIN; INSERT INTO app.lists VALUES ('a', 'alone'); PREPARE TRANSACTION 'one'")
    try stage.sql("COMMIT PREPARED 'one'")
    let run = try stage.run()
    try await stage.quiet()
    let program = try PostgresConnection(url: stage.database)
    try program.execute(
      "BEGIN; INSERT INTO app.lists VALUES ('c', 'kept'); PREPARE TRANSACTION 'two'")
    try stage.sql("INSERT INTO app.lists VALUES ('d', 'between')")
    try await stage.quiet()
    try program.execute("COMMIT PREPARED 'two'")
    try await stage.eventuallyRows(
      "SELECT id FROM app.lists ORDER BY id", [["a"], ["c"], ["d"]])
    try await stage.quiet()
    try await stage.expectEqual("SELECT id, name FROM lists ORDER BY id")
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  @Test("a program prepares a transaction with a new value of a group")
  func preparedValue() async throws {
    let cluster = try PostgresCluster()
    try PostgresConnection(url: try cluster.createDatabase()).execute(
      "ALTER SYSTEM SET max_prepared_transactions = 2")
    try cluster.restart()
    let server = try await Server.start()
    let stage = MirrorTests.Stage(
      server: server, device: try Device(), database: try cluster.createDatabase(),
      mirrors: try TemporaryDirectory())
    try stage.sql(
      "CREATE TABLE tasks(id int PRIMARY KEY, account text); INSERT INTO tasks VALUES (1, 'a')")
    try await stage.mirror([
      "adopt", "all", "--server", server.url, "--database", stage.database, "--table", "tasks",
      "--space-column", "account", "--space-name", "account-{}",
    ])
    let program = try PostgresConnection(url: stage.database)
    try program.execute("BEGIN; INSERT INTO tasks VALUES (2, 'b'); PREPARE TRANSACTION 'new'")
    try program.execute("COMMIT PREPARED 'new'")
    #expect(try stage.rows("SELECT count(*)::text FROM ferry_mirror.wanted") == [["1"]])
  }
}
