import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// A company's columns with the names that the mirror's own statements use.
@Suite("Adopted tables with the mirror's own words as names", .hangLimit)
struct MirrorColumnNameTests {
  private static let words = [
    "kind", "row_key", "former_key", "names", "vals", "olds", "fault", "travelled", "travels", "id",
    "mirror", "tab", "xid", "key", "tries", "at", "reason", "retry", "gone", "holder", "place",
    "last",
    "rows", "total", "done", "turn", "one", "file", "quiet", "t", "c", "x", "f", "d", "u", "m", "s",
    "k0",
    "c0", "old", "new", "found", "tg_op", "sqlerrm", "value", "written", "excluded", "state",
    "table",
    "select", "count", "bytes", "target", "condition", "record", "here", "there", "ferry_n",
    "ferry_bytes",
    "oid", "rowid", "time",
  ]

  private static func texts(_ values: (String) -> String) -> String {
    words.map { "\"\($0)\" = \(values($0))" }.joined(separator: ", ")
  }

  @Test("a table with all of these columns is adopted, changed and compared")
  func columns() async throws {
    let columns = Self.words.map { "\"\($0)\" text" }.joined(separator: ", ")
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE words("no" int PRIMARY KEY, \(columns), UNIQUE("turn"));
      INSERT INTO words("no") SELECT i FROM generate_series(1, 5) i;
      UPDATE words SET \(Self.texts { "'\($0)' || \"no\"" });
      CREATE TABLE "keys"("turn" int, "done" text, "quiet" int, "one" text, PRIMARY KEY("turn", "quiet", "one"));
      INSERT INTO "keys" SELECT i, 'x', 1, 'a' FROM generate_series(1, 5) i
      """)
    let stage = company.stage
    try await company.adopt(
      "--table", "words", "--table", "keys", "--where", #"words="kind" IS DISTINCT FROM 'hidden'"#)
    try await company.join()
    let all =
      "SELECT CAST(\"no\" AS text), \(Self.words.map { "\"\($0)\"" }.joined(separator: ", "))"
    let rows = all + " FROM words ORDER BY words.\"no\""
    try await company.expectEqual(rows, count: 5)
    let run = try stage.run()
    try stage.sql(
      """
      UPDATE words SET \(Self.texts { "'program ' || \"\($0)\"" }) WHERE "no" = 1;
      UPDATE words SET "no" = 12 WHERE "no" = 2; DELETE FROM words WHERE "no" = 3;
      UPDATE "keys" SET "turn" = 12 WHERE "turn" = 2; DELETE FROM "keys" WHERE "turn" = 3
      """)
    try await stage.quiet()
    try await company.device.exchange()
    try await company.device.write(
      """
      UPDATE words SET \(Self.texts { "'device ' || \"\($0)\"" }) WHERE "no" = 4;
      DELETE FROM words WHERE "no" = 5; INSERT INTO words("no", "turn") VALUES (20, 'new');
      UPDATE "keys" SET "done" = 'y' WHERE "turn" = 4; DELETE FROM "keys" WHERE "turn" = 5
      """)
    try await company.device.exchange()
    try await stage.eventuallyRows("SELECT \"turn\" FROM words WHERE \"no\" = 20", [["new"]])
    try await company.expectEqual(rows, count: 4)
    try await company.expectEqual(
      "SELECT CAST(\"turn\" AS text), \"done\" FROM \"keys\" ORDER BY \"keys\".\"turn\"", count: 3)
    try stage.sql("TRUNCATE words")
    try await stage.quiet()
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    try await company.device.exchange()
    #expect(try await company.device.rows("SELECT count(*) FROM words") == [[0]])
  }

  @Test("an adoption that fails before the first row leaves no trigger, no entry and no folder")
  func nothingLeft() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      "CREATE TABLE tasks(id int PRIMARY KEY, title text); INSERT INTO tasks VALUES (1, 'a')")
    let stage = company.stage
    // The space has another definition of the table.
    try await company.device.write("CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, title BLOB)")
    try await company.device.ferry("track", "tasks")
    try await company.device.ferry("schema", "publish")
    let failed = try await company.adopt("--table", "tasks", exits: 1)
    #expect(failed.error.contains("tasks"), "\(failed.error)")
    #expect(try stage.rows("SELECT tgname::text FROM pg_trigger WHERE NOT tgisinternal") == [])
    #expect(try stage.rows("SELECT to_regclass('ferry_mirror.mirrors')::text") != [])
    let names = try FileManager.default.contentsOfDirectory(atPath: stage.mirrors.url.path)
    #expect(!names.contains("crm"))
    try await company.adopt("--table", "tasks", space: "other")
  }

  @Test("of two columns whose names differ in case alone, the second one is left out by name")
  func caseOfNames() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE TABLE tasks(id int PRIMARY KEY, "Title" text, title text);
      INSERT INTO tasks VALUES (1, 'a', 'b')
      """)
    let made = try await company.adopt("--table", "tasks")
    #expect(
      made.output.contains(
        "left out: column tasks.title: devices do not distinguish it from column Title"))
    try await company.join()
    #expect(try await company.device.rows("SELECT * FROM tasks") == [[1, "a"]])
  }
}
