import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Adoptions during programs' writes to the table, and killed adoptions.
@Suite("Adopted tables under writes", .hangLimit)
struct MirrorAdoptionFaultTests {
  private static let many = """
    CREATE TABLE items(id int PRIMARY KEY, n int NOT NULL, note text);
    INSERT INTO items SELECT i, 0, 'item ' || i FROM generate_series(1, 20000) i;
    """
  private static let items =
    "SELECT CAST(id AS text), CAST(n AS text), note FROM items ORDER BY items.id"

  /// The row that the slices cannot pass; the writer leaves it alone.
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
        // A transaction with a rollback, and one left open for a while.
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
      try await eventually("the place moves in round \(round)", from: adopt) {
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
    try await eventually("it has begun", from: adopt) {
      (try? stage.rows("SELECT tab FROM ferry_mirror.adopted")) == [["items"]]
    }
    let other = try PostgresConnection(url: stage.database)
    try other.execute("BEGIN")
    try other.execute("UPDATE items SET note = 'last' WHERE id = 19999")
    try first.execute("COMMIT")
    try await eventually("the slices have come to the row", from: adopt) {
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

  /// Returns a company with nine notes, and a connection with a lock on the last one until commit.
  private static func lockedNotes() async throws -> (
    MirrorAdoptionTests.Company, PostgresConnection
  ) {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE notes(id int PRIMARY KEY, body text);
      INSERT INTO notes SELECT i, 'n' || i FROM generate_series(1, 9) i
      """)
    let lock = try PostgresConnection(url: company.stage.database)
    try lock.execute("BEGIN")
    try lock.execute("SELECT FROM notes WHERE id = 9 FOR UPDATE")
    return (company, lock)
  }

  /// Adopts the notes up to the locked one, and is killed there.
  private static func adoptUnlocked(_ company: MirrorAdoptionTests.Company) async throws {
    let adopt = try company.start("notes")
    try await eventually("the slices have come to the row", from: adopt) {
      (try? company.stage.rows("SELECT place[1] FROM ferry_mirror.adopted")) == [["8"]]
    }
    try await company.stage.quiet()
    adopt.send(SIGKILL)
    _ = try await adopt.exitStatus()
  }

  @Test("a file that is rolled back during the adoption gets the rows that it has forgotten")
  func rolledBack() async throws {
    let (company, lock) = try await Self.lockedNotes()
    let stage = company.stage
    try await Self.adoptUnlocked(company)
    let (folder, copy) = (
      stage.mirrors.url.appending(path: "crm"), stage.mirrors.url.appending(path: "copy")
    )
    try FileManager.default.copyItem(at: folder, to: copy)
    try stage.sql("DELETE FROM notes WHERE id = 1")
    try await Self.adoptUnlocked(company)
    // The space has the row again, with the values known to the copy.
    try await company.join()
    #expect(try await company.device.rows("SELECT id FROM notes WHERE id = 1") == [])
    try await company.device.write("INSERT INTO notes VALUES (1, 'n1')")
    try await company.device.exchange()
    try FileManager.default.removeItem(at: folder)
    try FileManager.default.moveItem(at: copy, to: folder)
    try lock.execute("COMMIT")
    try await company.adopt("--table", "notes")
    let run = try stage.run()
    try await company.expectEqual(
      "SELECT CAST(id AS text), body FROM notes ORDER BY notes.id", count: 9)
    run.send(SIGTERM)
    #expect(try await run.exitStatus() == .exited(0))
  }

  @Test("a row that a device deletes during the adoption stays deleted")
  func deletedMeanwhile() async throws {
    let (company, lock) = try await Self.lockedNotes()
    let stage = company.stage
    try await Self.adoptUnlocked(company)
    try await company.join()
    try await company.device.write("DELETE FROM notes WHERE id = 1")
    try await company.device.exchange()
    try lock.execute("COMMIT")
    // It pulls the delete before the last slice.
    try await stage.mirror(["verify", "crm"])
    try await company.expectEqual(
      "SELECT CAST(id AS text), body FROM notes ORDER BY notes.id", count: 8)
  }

  @Test("keys of several columns and UUIDs come in several slices, and an empty table in none")
  func keys() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE seats(hall text, place int, guest text, PRIMARY KEY(hall, place));
      CREATE TABLE guests(id uuid PRIMARY KEY, name text); CREATE TABLE empty(id bigint PRIMARY KEY);
      INSERT INTO seats SELECT chr(65 + i % 7) || i % 3, i, 'g' || i FROM generate_series(1, 2500) i;
      INSERT INTO guests SELECT gen_random_uuid(), 'n' || i FROM generate_series(1, 2500) i
      """)
    let stage = company.stage
    let made = try await company.adopt(
      "--table", "seats", "--table", "guests", "--table", "empty")
    #expect(made.output.contains("adopted    seats: 2,500 rows"))
    #expect(made.output.contains("adopted    empty: 0 rows"))
    try await company.join()
    try await company.expectEqual(
      "SELECT hall, CAST(place AS text), guest FROM seats ORDER BY seats.place", count: 2_500)
    let guests = "SELECT CAST(id AS text), name FROM guests ORDER BY guests.name"
    try await company.expectEqual(guests, count: 2_500)
    let run = try stage.run()
    try stage.sql("INSERT INTO empty VALUES (-5); DELETE FROM guests WHERE name LIKE '%7'")
    try await company.device.write("UPDATE seats SET place = -place WHERE place < 10")
    try await company.device.exchange()
    try await stage.eventuallyRows("SELECT count(*)::text FROM seats WHERE place < 0", [["9"]])
    try await company.expectEqual(guests, count: 2_250)
    #expect(try await company.device.rows("SELECT * FROM empty") == [[-5]])
    run.send(SIGKILL)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
  }

  @Test("a row that bypassed the triggers is not deleted, whatever follows")
  func bypassed() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE notes(id int PRIMARY KEY, body text, more text);
      INSERT INTO notes SELECT i, 'n' || i FROM generate_series(1, 5) i
      """)
    let stage = company.stage
    try await company.adopt("--table", "notes")
    try await company.join()
    try stage.sql(
      """
      SET session_replication_role = replica; INSERT INTO notes VALUES (10, 'ten', 'x'), (11, 'eleven', NULL);
      DELETE FROM notes WHERE id = 5
      """)
    // An update of a row unknown to the space.
    try stage.sql("UPDATE notes SET body = 'TEN' WHERE id = 10")
    // An update of a row deleted by a device: the space's rule decides.
    try await company.device.write("DELETE FROM notes WHERE id = 1")
    try await company.device.exchange()
    try stage.sql("UPDATE notes SET body = 'one' WHERE id = 1")
    let run = try stage.run()
    try await stage.quiet()
    try await eventually("the device has them", from: run) {
      try await company.device.exchange()
      return try await company.device.rows("SELECT body, more FROM notes WHERE id IN (1, 10)")
        == [["TEN", "x"]]
    }
    try await stage.eventuallyRows("SELECT body FROM notes WHERE id = 1", [])
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    let found = try await stage.mirror(["verify", "crm", "--repair", "tables"])
    #expect(
      found.output.split(separator: "\n").sorted() == [
        "2 rows differ; repaired", "notes 11: only in the table", "notes 5: only in the space",
      ])
    #expect(
      try stage.rows("SELECT body FROM notes ORDER BY id") == [
        ["n2"], ["n3"], ["n4"], ["n5"], ["TEN"], ["eleven"],
      ])
    try await company.expectEqual(
      "SELECT CAST(id AS text), body, more FROM notes ORDER BY notes.id", count: 6)
  }

  @Test("a program with locks in another order neither fails nor stops an adoption or a removal")
  func lockOrder() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE a(id int PRIMARY KEY, n int); CREATE TABLE b(id int PRIMARY KEY, n int);
      INSERT INTO a VALUES (1, 0); INSERT INTO b VALUES (1, 0)
      """)
    let stage = company.stage
    let more = ["--mirrors", stage.mirrors.url.path]
    let adopt = ["mirror"] + company.arguments(["--table", "a", "--table", "b"]) + more
    for arguments in [adopt, ["mirror", "remove", "crm"] + more] {
      let program = try PostgresConnection(url: stage.database)
      try program.execute("BEGIN; UPDATE b SET n = n + 1")
      let process = try ChildProcess(
        try Executables.ferryd(), arguments, directory: stage.mirrors.url)
      try await eventually("it waits for the program", from: process) {
        try stage.rows("SELECT 'x' FROM pg_locks WHERE NOT granted AND relation = 'b'::regclass")
          != []
      }
      // It would wait in a circle.
      try program.execute("UPDATE a SET n = n + 1; COMMIT")
      #expect(try await process.exitStatus() == .exited(0))
    }
    #expect(try stage.rows("SELECT a.n::text, b.n::text FROM a, b") == [["2", "2"]])
  }
}
