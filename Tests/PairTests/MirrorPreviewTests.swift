import Ferry
import FerryPostgres
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// `ferryd mirror plan`, with real servers, databases and processes.
@Suite("Plans of mirrors before they are made", .hangLimit)
struct MirrorPreviewTests {
  private typealias Company = MirrorAdoptionTests.Company

  private static let tables = """
    CREATE TABLE lists(id text PRIMARY KEY, name text);
    CREATE TABLE people(id int PRIMARY KEY);
    CREATE TABLE tasks(id bigint PRIMARY KEY, title text, done boolean NOT NULL DEFAULT false,
      size int GENERATED ALWAYS AS (length(title)) STORED, code text,
      list text REFERENCES lists, owner int REFERENCES people,
      UNIQUE (title), UNIQUE (code, size));
    INSERT INTO lists SELECT i::text, 'list ' || i FROM generate_series(1, 3) i;
    INSERT INTO tasks(id, title, list) SELECT i, 'task ' || i, '1' FROM generate_series(1, 5) i;
    ANALYZE
    """

  private static func plan(_ company: Company, _ more: String...) -> [String] {
    ["plan"] + company.arguments(more).dropFirst()
  }

  /// Expects that neither side has anything of a mirror.
  private func expectUntouched(_ company: Company) async throws {
    let stage = company.stage
    #expect(try stage.rows("SELECT to_regnamespace('ferry_mirror')::text") == [[nil]])
    #expect(try stage.rows("SELECT tgname::text FROM pg_trigger WHERE tgname LIKE 'ferry%'") == [])
    #expect(try stage.rows("SELECT pubname::text FROM pg_publication") == [])
    #expect(!FileManager.default.fileExists(atPath: stage.mirrors.url.path + "/crm"))
    #expect(try await company.device.open().schema().tables == [:])
  }

  private struct Answer: Decodable {
    struct Table: Decodable {
      struct Column: Decodable {
        var column: String
        var device: String?
        var reason: String?
      }
      struct Part: Decodable {
        var kind: String
        var columns: [String]
        var reason: String?
      }
      var table: String
      var rows: String?
      var definition: String?
      var triggers: String
      var columns: [Column]
      var parts: [Part]

      /// The parts left behind, as `adopt` names them.
      var left: [String] {
        var lines: [String] = []
        for column in columns {
          guard let reason = column.reason else { continue }
          lines.append("left out: column \(table).\(column.column): \(reason)")
        }
        for part in parts {
          guard let reason = part.reason else { continue }
          let names = part.columns.joined(separator: ", ")
          lines.append("left out: \(part.kind) (\(names)) of table \(table): \(reason)")
        }
        return lines
      }
    }
    var possible: Bool
    var refused: [String]
    var tables: [Table]
  }

  private func answer(_ text: String) throws -> Answer {
    try JSONDecoder().decode(Answer.self, from: Data(text.utf8))
  }

  @Test("a plan writes nothing, and adopt does what the plan says")
  func agreement() async throws {
    let company = try await Company.make(Self.tables)
    let stage = company.stage
    let arguments = Self.plan(company, "--table", "tasks", "--table", "lists")
    let shown = try await stage.mirror(arguments).output
    let lines: [String] = [
      "rows       tasks: about 5", "rows       lists: about 3",
      "definition tasks: the space gets it", "unique key tasks (title)",
      "foreign key tasks (list) to lists",
      "left out   tasks: unique key (code, size): column size does not travel",
      "left out   tasks: foreign key (owner): it refers to a table that is not adopted",
      "left out: PostgreSQL computes it",
      "next       ferryd mirror adopt crm with these options",
    ]
    for line in lines { #expect(shown.contains(line), "\(line) in \(shown)") }
    let plan = try answer(try await stage.mirror(arguments + ["--json"]).output)
    #expect(plan.possible && plan.refused == [])
    try await expectUntouched(company)
    let adopted = try await company.adopt("--table", "tasks", "--table", "lists").output
    let left = adopted.split(separator: "\n").filter { $0.hasPrefix("left out: ") }
    let planned = plan.tables.flatMap(\.left)
    #expect(Set(left.map(String.init)) == Set(planned) && left.count == planned.count)
    let schema = try await company.device.open().schema()
    for table in plan.tables {
      let definition = try #require(schema.tables[Name(table.table)]?.definition)
      let travelling = table.columns.filter { $0.device != nil }.map { Name($0.column) }
      let defined = definition.key.names + definition.columns.map(\.name)
      #expect(Set(travelling) == Set(defined))
      let parts = table.parts.filter { $0.reason == nil }
      #expect(definition.unique.count + definition.references.count == parts.count)
      let triggers = try stage.rows(
        """
        SELECT count(*)::text FROM pg_trigger WHERE tgrelid = '\(table.table)'::regclass
          AND tgname LIKE 'ferry%' AND tgfoid = (SELECT to_regproc(function)
            FROM ferry_mirror.recorded WHERE tab = '\(table.table)')
        """)
      #expect(triggers == [[table.triggers]])
      let total = try stage.rows(
        "SELECT total::text FROM ferry_mirror.adopted WHERE tab = '\(table.table)'")
      #expect(total == [[table.rows]])
    }
  }

  @Test("a plan names all reasons against it, and so does the refused adoption")
  func refusals() async throws {
    let company = try await Company.make(
      """
      \(Self.tables); CREATE VIEW short AS SELECT id FROM tasks; CREATE TABLE bare(id int);
      CREATE TABLE full_of(id int PRIMARY KEY DEFERRABLE);
      CREATE TABLE hidden(id int PRIMARY KEY); ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
      """)
    var tables: [String] = []
    for name in ["short", "bare", "full_of", "absent", "tasks"] { tables += ["--table", name] }
    let reasons: [String] = [
      "table short cannot be adopted: it is a view",
      "table bare cannot be adopted: it has no primary key",
      "table full_of cannot be adopted: its primary key is deferrable",
      "the database has no table public.absent",
    ]
    let plan = try await company.stage.mirror(
      ["plan"] + company.arguments(tables).dropFirst(), exits: 1
    ).output
    let refused = try await company.stage.mirror(company.arguments(tables), exits: 1).error
    for reason in reasons {
      #expect(plan.contains("refused    \(reason)"), "\(plan)")
      #expect(refused.contains(reason), "\(refused)")
    }
    #expect(plan.contains("rows       tasks: about 5"), "\(plan)")
    #expect(plan.contains("would change nothing, for 4 reasons"))
    try await expectUntouched(company)
    let condition = try await company.stage.mirror(
      Self.plan(company, "--table", "tasks", "--where", "tasks=nothing > 1"), exits: 1
    ).output
    #expect(condition.contains("refused    table tasks cannot be used: "), "\(condition)")
    // The space defines it in another way.
    try await company.device.write("CREATE TABLE lists(id TEXT PRIMARY KEY, name INTEGER)")
    try await company.device.ferry("track", "lists")
    try await company.device.ferry("schema", "publish")
    let other = try await company.stage.mirror(
      Self.plan(company, "--table", "tasks", "--table", "lists"), exits: 1
    ).output
    #expect(other.contains("definition lists: disagrees: column name is declared integer there"))
    #expect(other.contains("definition tasks: the space gets it"), "\(other)")
    #expect(try company.stage.rows("SELECT to_regnamespace('ferry_mirror')::text") == [[nil]])
  }

  @Test("a role that may only read plans, and learns the missing rights")
  func reader() async throws {
    let company = try await Company.make(Self.tables)
    let stage = company.stage
    let role = "reader_\(UUID().uuidString.prefix(8).lowercased())"
    try stage.sql(
      "CREATE ROLE \(role) LOGIN PASSWORD 'secret'; GRANT SELECT ON tasks, lists TO \(role)")
    defer { try? stage.sql("DROP OWNED BY \(role) CASCADE; DROP ROLE \(role)") }
    var parts = try #require(URLComponents(string: stage.database))
    (parts.user, parts.password) = (role, "secret")
    let arguments: [String] = [
      "plan", "crm", "--server", company.server.url, "--space", Device.space, "--database",
      try #require(parts.string), "--table", "tasks", "--table", "lists",
    ]
    let plan = try await stage.mirror(arguments, exits: 1).output
    let lines: [String] = [
      "rows       tasks: about 5", "definition tasks: the space gets it", "role       \(role)",
      "may not make schema ferry_mirror: run CREATE SCHEMA ferry_mirror AUTHORIZATION \(role)",
      "table tasks cannot be adopted: the user of the database lacks UPDATE, TRIGGER on it",
      "left out   tasks: writes of devices: the user of the database lacks INSERT, DELETE on it",
    ]
    for line in lines { #expect(plan.contains(line), "\(line) in \(plan)") }
    try await expectUntouched(company)
    try stage.sql(
      """
      GRANT INSERT, UPDATE, DELETE, TRIGGER ON tasks, lists TO \(role);
      CREATE SCHEMA ferry_mirror AUTHORIZATION \(role)
      """)
    try await stage.mirror(arguments)
    try await stage.mirror(["adopt"] + arguments.dropFirst())
    try await stage.mirror(["remove", "crm"])
  }

  @Test("a plan of a present mirror names changes of the tables and the space, and stores no stop")
  func present() async throws {
    let company = try await Company.make(Self.tables)
    let stage = company.stage
    try await company.adopt("--table", "lists")
    let fine = try await stage.mirror(["plan", "crm"]).output
    #expect(fine.contains("definition lists: the space has it"), "\(fine)")
    #expect(fine.contains("next       ferryd mirror run crm"))
    try stage.sql("ALTER TABLE lists ADD COLUMN colour text")
    let added = try await stage.mirror(["plan", "crm"]).output
    #expect(added.contains("definition lists: is followed: colour new"), "\(added)")
    try stage.sql("ALTER TABLE lists RENAME COLUMN name TO title")
    let renamed = try await stage.mirror(["plan", "crm"]).output
    #expect(
      renamed.contains("definition lists: is followed: name is named title; colour new"),
      "\(renamed)")
    try stage.sql("ALTER TABLE lists RENAME COLUMN id TO number")
    let stopped = try await stage.mirror(["plan", "crm"], exits: 4).output
    #expect(stopped.contains("stopped    table lists: column id, name is gone"), "\(stopped)")
    #expect(stopped.contains("would carry no rows"))
    #expect(try stage.rows("SELECT tab FROM ferry_mirror.stops") == [])
    let taken = try await stage.mirror(
      [
        "plan", "crm", "--server", company.server.url, "--space", "other", "--database",
        stage.database, "--table", "tasks",
      ], exits: 1
    ).output
    #expect(taken.contains("refused    the database has a mirror crm already"), "\(taken)")
    #expect(taken.contains("space      other is missing, and would be made"), "\(taken)")
  }

  @Test("a plan of add names the columns to be made, and those of a later schema")
  func addition() async throws {
    let company = try await Company.make("CREATE TABLE other(id int)")
    let (stage, device) = (company.stage, company.device)
    try await device.write("CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
    try await device.ferry("track", "notes")
    try await device.ferry("schema", "publish")
    let options = [
      "crm", "--server", company.server.url, "--space", Device.space, "--database",
      stage.database, "--schema", "app",
    ]
    let plan = try await stage.mirror(["plan"] + options + ["--add"]).output
    #expect(plan.contains("TEXT, new") && plan.contains("TEXT, key, new"), "\(plan)")
    #expect(try stage.rows("SELECT to_regnamespace('app')::text") == [[nil]])
    try await stage.mirror(["add"] + options)
    let fine = try await stage.mirror(["plan", "crm"]).output
    #expect(!fine.contains("new"), "\(fine)")
    try await device.write("ALTER TABLE notes ADD COLUMN colour TEXT")
    try await device.ferry("schema", "publish")
    let later = try await stage.mirror(["plan", "crm"]).output
    #expect(later.contains("colour") && later.contains("TEXT, new"), "\(later)")
    #expect(
      try stage.rows(
        "SELECT attname::text FROM pg_attribute WHERE attrelid = 'app.notes'::regclass AND attnum > 0"
      ) == [["id"], ["body"]])
  }

  @Test("a plan of a group names the space of each value")
  func group() async throws {
    let company = try await Company.make(
      """
      CREATE TABLE tasks(id text PRIMARY KEY, account text, title text);
      INSERT INTO tasks VALUES ('a', '7', 'x'), ('b', '7', 'y'), ('c', 'a/b', 'z'), ('d', NULL, 'w')
      """)
    let plan = try await company.stage.mirror([
      "plan", "accounts", "--server", company.server.url, "--database", company.stage.database,
      "--table", "tasks", "--space-column", "account", "--space-name", "account-{}", "--json",
    ]).output
    #expect(
      plan.contains(#"{"value":"7","rows":"2","space":"account-7","reason":null}"#), "\(plan)")
    #expect(plan.contains(#"no space can have the name “account-a/b”"#))
    #expect(plan.contains(#"{"value":null,"rows":"1","space":null"#))
    try await expectUntouched(company)
  }
}
