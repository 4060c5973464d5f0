import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Tables and constraints that PostgreSQL has or refuses when a mirror makes tables.
@Suite("Tables of mirrors", .hangLimit)
struct MirrorTablesTests {
  private typealias Stage = MirrorTests.Stage

  private static func stop(_ run: ChildProcess) async throws {
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  @Test("a table that the space gets later never takes another's table, and the others go on")
  func foreign() async throws {
    let stage = try await Stage.make()
    try stage.sql(
      """
      CREATE TABLE app.tags(id text PRIMARY KEY, n int); INSERT INTO app.tags VALUES ('old', 1);
      CREATE TABLE app.kinds(id uuid PRIMARY KEY);
      CREATE TABLE app.loose(id text)
      """)
    let run = try stage.run()
    for table in ["tags", "kinds", "loose", "marks"] {
      try await stage.device.write("CREATE TABLE \(table)(id TEXT PRIMARY KEY NOT NULL)")
      try await stage.device.ferry("track", table)
    }
    try await stage.device.ferry("schema", "publish")
    try await stage.device.write(
      """
      INSERT INTO tags VALUES ('t'); INSERT INTO kinds VALUES ('k'); INSERT INTO loose VALUES ('l');
      INSERT INTO marks VALUES ('m'); INSERT INTO tasks(id) VALUES ('a')
      """)
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT m.id, t.id FROM app.marks m, app.tasks t", [["m", "a"]])
    try stage.sql("UPDATE app.tags SET n = 2; UPDATE app.tasks SET title = 'one'")
    try await stage.quiet()
    try await stage.device.exchange()
    #expect(try await stage.device.rows("SELECT id FROM tags") == [["t"]])
    #expect(try stage.rows("SELECT id, n::text FROM app.tags") == [["old", "2"]])
    #expect(
      try stage.rows("SELECT count(*)::text FROM app.kinds, app.loose") == [["0"]])
    try await Self.stop(run)
    // The mirror takes the name once it is free.
    try stage.sql("DROP TABLE app.tags")
    let again = try stage.run()
    try await stage.eventuallyRows(
      "SELECT (to_regclass('app.tags') IS NOT NULL)::text", [["true"]])
    try await stage.eventuallyRows("SELECT id FROM app.tags", [["t"]])
    try await Self.stop(again)
  }

  @Test("a unique key that the rows of the table violate does not keep their correction away")
  func violated() async throws {
    let stage = try await Stage.make()
    try await stage.device.write(
      "INSERT INTO tasks(id, title) VALUES ('a', 'same'), ('b', 'same')")
    try await stage.device.exchange()
    let run = try stage.run()
    try await stage.eventuallyRows("SELECT id FROM app.tasks ORDER BY id", [["a"], ["b"]])
    try await Self.stop(run)
    try await stage.device.write(
      """
      UPDATE tasks SET title = 'other' WHERE id = 'b';
      CREATE UNIQUE INDEX tasks_title ON tasks(title)
      """)
    try await stage.device.ferry("schema", "publish")
    try await stage.device.exchange()
    let again = try stage.run()
    try await stage.eventuallyRows(
      "SELECT title FROM app.tasks ORDER BY id", [["same"], ["other"]])
    // The next round makes the key.
    try stage.sql("INSERT INTO app.lists VALUES ('l')")
    try await stage.eventuallyRows(
      """
      SELECT count(*)::text FROM pg_constraint
      WHERE contype = 'u' AND conrelid = 'app.tasks'::regclass
      """, [["1"]])
    try await Self.stop(again)
    try await stage.expectEqual("SELECT id, title FROM tasks ORDER BY id")
  }
}
