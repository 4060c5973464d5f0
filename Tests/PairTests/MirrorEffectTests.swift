import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Triggers of programs that change rows while a mirror writes them, in both kinds of tables.
@Suite("Triggers beside a mirror's writes", .hangLimit)
struct MirrorEffectTests {
  private static let kinds = ["add", "adopt"]
  private static let captures = ["triggers", "log"]

  private static let lists = "SELECT id, name FROM lists ORDER BY lists.id"
  private static let tasks =
    "SELECT id, title, CAST(done AS text), list FROM tasks ORDER BY tasks.id"
  private static let seats = "SELECT CAST(place AS text), guest FROM seats ORDER BY seats.place"

  /// A mirror of tables made by it, or of a company's tables, and a device with them.
  private static func made(_ kind: String, _ capture: String) async throws -> MirrorTests.Stage {
    if kind == "add" { return try await MirrorTests.Stage.make("--capture", capture) }
    let company = try await MirrorAdoptionTests.Company.make(
      """
      CREATE SCHEMA app; CREATE TABLE app.lists(id text PRIMARY KEY, name text NOT NULL DEFAULT 'new');
      CREATE TABLE app.tasks(id text PRIMARY KEY, title text, done bigint NOT NULL DEFAULT 0,
        list text REFERENCES app.lists ON DELETE CASCADE);
      CREATE TABLE app.seats(hall bigint, place bigint, guest text, PRIMARY KEY(hall, place))
      """)
    try await company.adopt(
      "--schema", "app", "--table", "lists", "--table", "tasks", "--table", "seats", "--capture",
      capture)
    try await company.join()
    return company.stage
  }

  /// Creates a function, and a trigger for each row.
  private static func trigger(_ event: String, on table: String, _ body: String) -> String {
    let name = "act_\(UUID().uuidString.prefix(8).lowercased())"
    return """
      CREATE FUNCTION app.\(name)() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \(body) END $$;
      CREATE TRIGGER \(name) \(event) ON app.\(table) FOR EACH ROW EXECUTE FUNCTION app.\(name)();
      """
  }

  /// Carries a device's writes, and all effects.
  private static func carry(
    _ stage: MirrorTests.Stage, _ writes: String, until rows: [[String?]], of query: String
  ) async throws {
    try await stage.device.write(writes)
    try await stage.device.exchangeAll()
    let run = try stage.run()
    try await stage.eventuallyRows(query.replacing("FROM ", with: "FROM app."), rows)
    try await MirrorRefusalTests.stop(run)
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    try await stage.device.exchangeAll()
    for query in [lists, tasks, seats] {
      #expect(
        try await stage.device.rows(query).map { $0.map { $0.text } }
          == (try stage.rows(query.replacing("FROM ", with: "FROM app."))), "\(query)")
    }
  }

  @Test(
    "devices get a row as a trigger has made it, and a trigger may discard a row or a delete",
    arguments: kinds, captures)
  func made(kind: String, capture: String) async throws {
    let stage = try await Self.made(kind, capture)
    try stage.sql(
      Self.trigger(
        "BEFORE INSERT OR UPDATE", on: "lists", "NEW.name := upper(NEW.name); RETURN NEW;")
        + Self.trigger(
          "AFTER INSERT OR UPDATE", on: "seats",
          """
          IF pg_trigger_depth() = 1 THEN
            UPDATE app.seats SET guest = guest || '!' WHERE hall = NEW.hall AND place = NEW.place;
          END IF; RETURN NULL;
          """)
        + Self.trigger(
          "BEFORE INSERT", on: "tasks",
          "IF NEW.title = 'none' THEN RETURN NULL; END IF; RETURN NEW;")
        + Self.trigger(
          "BEFORE DELETE", on: "tasks",
          "IF OLD.title = 'kept' THEN RETURN NULL; END IF; RETURN OLD;"))
    try await Self.carry(
      stage,
      """
      INSERT INTO lists VALUES ('a', 'one'), ('b', 'two');
      INSERT INTO seats VALUES (1, 1, 'Ada'), (1, 2, 'Bob');
      INSERT INTO tasks(id, title) VALUES ('t1', 'kept'), ('t2', 'none'), ('t3', 'gone')
      """, until: [["1", "Ada!"], ["2", "Bob!"]], of: Self.seats)
    #expect(try await stage.device.rows(Self.lists) == [["a", "ONE"], ["b", "TWO"]])
    #expect(try await stage.device.rows("SELECT id FROM tasks ORDER BY id") == [["t1"], ["t3"]])
    try await Self.carry(
      stage,
      """
      UPDATE lists SET name = 'three' WHERE id = 'a'; UPDATE seats SET guest = 'Eve' WHERE place = 2;
      DELETE FROM tasks
      """, until: [["1", "Ada!"], ["2", "Eve!"]], of: Self.seats)
    #expect(try await stage.device.rows(Self.lists) == [["a", "THREE"], ["b", "TWO"]])
    #expect(try await stage.device.rows("SELECT id FROM tasks") == [["t1"]])
    try await stage.mirror(["remove", "crm"])
  }

  @Test(
    "a trigger's change of another row of the same statement reaches the space",
    arguments: kinds, captures)
  func others(kind: String, capture: String) async throws {
    let stage = try await Self.made(kind, capture)
    try await Self.carry(
      stage, "INSERT INTO tasks(id, title) VALUES ('a', '1'), ('b', '2'), ('c', '3')",
      until: [["a", "1", "0", nil], ["b", "2", "0", nil], ["c", "3", "0", nil]], of: Self.tasks)
    try stage.sql(
      Self.trigger("BEFORE UPDATE", on: "tasks", "RETURN NEW;")
        + Self.trigger(
          "AFTER UPDATE", on: "tasks",
          """
          IF NEW.title = 'go' THEN UPDATE app.tasks SET done = done + 1 WHERE id <> 'a'; END IF;
          RETURN NULL;
          """))
    try await Self.carry(
      stage,
      "UPDATE tasks SET title = 'go' WHERE id = 'a'; UPDATE tasks SET title = 'x' WHERE id = 'b'",
      until: [["a", "go", "0", nil], ["b", "x", "1", nil], ["c", "3", "1", nil]], of: Self.tasks)
    try await stage.mirror(["remove", "crm"])
  }

  @Test(
    "a trigger's change of a row that the mirror writes afterwards does not reach the space",
    arguments: kinds, captures)
  func overwritten(kind: String, capture: String) async throws {
    let stage = try await Self.made(kind, capture)
    try await Self.carry(
      stage,
      """
      INSERT INTO lists VALUES ('l', 'one');
      INSERT INTO tasks(id, title, list) VALUES ('a', '1', 'l'), ('b', '2', 'l')
      """, until: [["a", "1", "0", "l"], ["b", "2", "0", "l"]], of: Self.tasks)
    try stage.sql(
      Self.trigger(
        "AFTER UPDATE", on: "lists",
        "UPDATE app.tasks SET title = 'effect' WHERE list = NEW.id; RETURN NULL;"))
    try await Self.carry(
      stage,
      "UPDATE lists SET name = 'two'; UPDATE tasks SET title = 'device' WHERE id = 'a'",
      until: [["a", "device", "0", "l"], ["b", "effect", "0", "l"]], of: Self.tasks)
    try await stage.mirror(["remove", "crm"])
  }

  @Test(
    "an amount and a line of a trigger stay beside those of a row that the mirror writes afterwards",
    arguments: kinds, captures)
  func added(kind: String, capture: String) async throws {
    let stage = try await Self.made(kind, capture)
    let text = "top\nmiddle\nend\n"
    try await Self.carry(
      stage,
      """
      INSERT INTO lists VALUES ('l', 'one');
      INSERT INTO tasks(id, title, done, list) VALUES ('a', '\(text)', 10, 'l'), ('b', NULL, 10, 'l')
      """, until: [["a", text, "10", "l"], ["b", nil, "10", "l"]], of: Self.tasks)
    let replica = try await stage.device.open()
    var schema = try await replica.schema()
    schema.tables["tasks"]?.columns["done"] = ColumnRules(policy: .counter)
    schema.tables["tasks"]?.columns["title"] = ColumnRules(policy: .textMerge)
    schema.version += 1
    _ = try await replica.applySchema(schema)
    try await stage.mirror(["verify", "crm"])
    try stage.sql(
      Self.trigger(
        "AFTER UPDATE", on: "lists",
        """
        UPDATE app.tasks SET done = done - 1, title = title || E'more\\n' WHERE list = NEW.id;
        RETURN NULL;
        """))
    let both = "TOP\nmiddle\nend\nmore\n"
    try await Self.carry(
      stage,
      """
      UPDATE lists SET name = 'two';
      UPDATE tasks SET done = done - 2, title = replace(title, 'top', 'TOP') WHERE id = 'a'
      """, until: [["a", both, "7", "l"], ["b", nil, "9", "l"]], of: Self.tasks)
    // The device has not changed the amount: the row of the step has the former one.
    try await Self.carry(
      stage, "UPDATE lists SET name = 'three'; UPDATE tasks SET title = 'b' WHERE id = 'b'",
      until: [["a", both + "more\n", "6", "l"], ["b", "b", "8", "l"]], of: Self.tasks)
    try await stage.mirror(["remove", "crm"])
  }
}

extension Value {
  fileprivate var text: String? { if case .text(let text) = self { text } else { nil } }
}
