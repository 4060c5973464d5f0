import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Adoptions while programs write to the table, and adoptions that are killed.
@Suite("Adopted tables under writes", .hangLimit)
struct MirrorAdoptionFaultTests {
  private static let many = """
    CREATE TABLE items(id int PRIMARY KEY, n int NOT NULL, note text);
    INSERT INTO items SELECT i, 0, 'item ' || i FROM generate_series(1, 20000) i;
    """
  private static let items =
    "SELECT CAST(id AS text), CAST(n AS text), note FROM items ORDER BY items.id"

  /// The row that the slices cannot come past, and that the writer leaves alone.
  private static let locked = 19_000

  /// Writes to rows before and behind the slices' place: updates, inserts, deletes and new keys.
  private static func write(_ round: Int, _ connection: PostgresConnection) throws {
    let low = round * 37 % 20_000 + 1
    try connection.execute(
      """
      UPDATE items SET n = n + 1 WHERE (id BETWEEN \(low) AND \(low + 3)
        OR id BETWEEN \(20_001 - low) AND \(20_004 - low)) AND id <> \(locked);
      INSERT INTO items VALUES (\(100_000 + round), \(round), 'new');
      INSERT INTO items VALUES (\(-round), \(round), NULL);
      DELETE FROM items WHERE id IN (\(low + 5), \(20_006 - low)) AND id <> \(locked);
      UPDATE items SET id = id + 200000 WHERE id = \(low + 7) AND id <> \(locked)
      """)
  }

  @Test("writers go on during an adoption that is killed again and again, and all sides are equal")
  func killed() async throws {
    let company = try await MirrorAdoptionTests.Company.make(Self.many)
    let stage = company.stage
    let database = stage.database
    let writer = Task.detached {
      let connection = try PostgresConnection(url: database)
      var round = 0
      while !Task.isCancelled {
        round += 1
        try Self.write(round, connection)
        // A transaction that is rolled back, and one that stays open for a while.
        try connection.execute("BEGIN")
        try connection.execute(
          "UPDATE items SET n = -1 WHERE id = \(round * 53 % 20_000) AND id <> \(Self.locked)")
        try? await Task.sleep(for: .milliseconds(20))
        try connection.execute(round % 2 == 0 ? "ROLLBACK" : "COMMIT")
      }
      return round
    }
    // The slices cannot come past this row before the last kill.
    let lock = try PostgresConnection(url: database)
    try lock.execute("BEGIN")
    try lock.execute("SELECT FROM items WHERE id = \(Self.locked) FOR UPDATE")
    var last = ""
    for round in 0..<4 {
      let adopt = try company.start("items")
      try await eventually("the place moves in round \(round)") {
        let place = try? stage.rows("SELECT coalesce(place[1], '') FROM ferry_mirror.adopted")
        guard let text = place?.first?.first ?? nil else { return false }
        guard text != last || (Int(text) ?? 0) > 18_000 else { return false }
        last = text
        return true
      }
      adopt.send(SIGKILL)
      _ = try await adopt.exitStatus()
    }
    #expect(try stage.rows("SELECT done::text FROM ferry_mirror.adopted") == [["false"]])
    try lock.execute("COMMIT")
    let done = try await company.adopt("--table", "items")
    #expect(done.output.contains("unsent     0 rows"))
    let run = try stage.run()
    writer.cancel()
    let rounds = try await writer.value
    try await company.join()
    try await company.expectEqual(Self.items)
    // No row of the company is lost: only the writer's own deletes are missing.
    let own = try PostgresConnection(url: database).query(
      .once(
        "SELECT count(*) FROM items WHERE id BETWEEN -\(rounds) AND -1 OR id BETWEEN 100001 AND \(100_000 + rounds)"
      ))
    #expect(try own.first?.int8(0) == Int64(2 * rounds))
    run.send(SIGKILL)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
  }

  @Test("an uncommitted update is waited for, and blocks no other table's writers")
  func locked() async throws {
    let company = try await MirrorAdoptionTests.Company.make(Self.many)
    let stage = company.stage
    let first = try PostgresConnection(url: stage.database)
    try first.execute("BEGIN")
    try first.execute("SELECT FROM items WHERE id = 1 FOR UPDATE")
    let adopt = try company.start("items")
    try await eventually("it has begun") {
      (try? stage.rows("SELECT tab FROM ferry_mirror.adopted")) == [["items"]]
    }
    let other = try PostgresConnection(url: stage.database)
    try other.execute("BEGIN")
    try other.execute("UPDATE items SET note = 'last' WHERE id = 19999")
    try first.execute("COMMIT")
    try await eventually("the slices have come to the row") {
      try stage.rows("SELECT place[1] FROM ferry_mirror.adopted") == [["19998"]]
    }
    // Others write before and behind it.
    try stage.sql("UPDATE items SET note = 'x' WHERE id IN (5, 20000)")
    try other.execute("COMMIT")
    #expect(try await adopt.exitStatus() == .exited(0))
    try await company.join()
    try await company.expectEqual(Self.items, count: 20_000)
    #expect(try await company.device.value("SELECT note FROM items WHERE id = 19999") == "last")
  }
}
