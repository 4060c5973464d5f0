import Ferry
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

/// Schemas of a hostile administrator of one space, which a running mirror follows. U+0600 and the quote
/// behind it are one `Character` of Swift, and two characters of SQL.
@Suite("Hostile schemas of mirrored spaces", .hangLimit)
struct MirrorQuotingTests {
  private typealias Stage = MirrorTests.Stage

  /// Replaces the schema of the stage's space, as an administrator does.
  private static func apply(
    _ stage: Stage, _ change: (inout SpaceSchema) -> Void
  ) async throws {
    var schema = try await stage.device.open().schema()
    schema.version += 1
    change(&schema)
    let file = stage.device.directory.file("schema.json")
    try Data(schema.encoded()).write(to: file)
    try await stage.device.ferry("schema", "apply", file.path, "--replace")
  }

  private static func table(_ columns: [DeclaredColumn] = []) -> TableRules {
    var rules = TableRules.standard
    rules.definition = DeclaredTable(key: .text("id"), columns: columns)
    return rules
  }

  @Test("a declared default attaches no file to a mirror's replica, and rows get it byte for byte")
  func defaultValue() async throws {
    let stage = try await Stage.make()
    let canary = stage.mirrors.file("canary.db").path
    let attack = "\u{600}');ATTACH \"\(canary)\" AS s;CREATE TABLE s.t(x);--"
    let run = try stage.run()
    try await Self.apply(stage) { schema in
      schema.tables["tasks"]?.definition?.columns.append(
        DeclaredColumn("color", .text, defaultValue: .text(attack)))
    }
    try await stage.eventuallyRows(
      "SELECT column_name::text FROM information_schema.columns WHERE column_name = 'color'",
      [["color"]])
    try stage.sql("INSERT INTO app.tasks(id) VALUES ('t')")
    try await stage.quiet()
    #expect(try stage.rows("SELECT color FROM app.tasks") == [[attack]])
    try await stage.device.write("INSERT INTO tasks(id) VALUES ('u')")
    try await stage.device.exchange()
    try await stage.eventuallyRows("SELECT id FROM app.tasks ORDER BY id", [["t"], ["u"]])
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    let replica = Device("crm/replica.db", in: stage.mirrors)
    #expect(
      try await replica.rows("SELECT color FROM tasks ORDER BY id") == [
        [.text(attack)], [.text(attack)],
      ])
    #expect(!FileManager.default.fileExists(atPath: canary))
  }

  @Test("names of tables and columns run no SQL in PostgreSQL, and their rows travel both ways")
  func names() async throws {
    let stage = try await Stage.make()
    let program = Name("\u{600}\" (a int);COPY (SELECT 1) TO PROGRAM 'touch ferry-owned';--")
    let drop = Name("\u{600}\" (a int);DROP TABLE app.canary;--")
    let column = Name("\u{600}\" text);DROP TABLE app.canary;--")
    try stage.sql("CREATE TABLE app.canary()")
    let run = try stage.run()
    try await Self.apply(stage) { schema in
      schema.tables[program] = Self.table()
      schema.tables[drop] = Self.table([DeclaredColumn(column, .text)])
    }
    let made = "SELECT count(*)::text FROM pg_class WHERE relname = "
    for name in [program, drop] {
      try await stage.eventuallyRows(made + quoted(postgres: name.text), [["1"]])
    }
    let place = "app.\(quoted(drop))"
    try stage.sql("INSERT INTO \(place)(id, \(quoted(column))) VALUES ('a', 'one')")
    try await stage.quiet()
    try await stage.device.exchange()
    try await stage.device.ferry("track", "--create", "--all")
    try await stage.device.exchange()
    try await stage.device.write(
      "INSERT INTO \(quoted(drop)) SELECT 'b', \(quoted(column)) || '!' FROM \(quoted(drop))")
    try await stage.device.exchange()
    try await stage.eventuallyRows(
      "SELECT \(quoted(column)) FROM \(place) ORDER BY id", [["one"], ["one!"]])
    #expect(try stage.rows("SELECT to_regclass('app.canary')::text") == [["app.canary"]])
    #expect(try stage.rows("SELECT pg_stat_file('ferry-owned', true)::text") == [[nil]])
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  @Test("a definition that an adopted table cannot have makes no write of the company fail")
  func definition() async throws {
    let company = try await MirrorAdoptionTests.Company.make(
      "CREATE TABLE tasks(id bigint PRIMARY KEY, title text); INSERT INTO tasks VALUES (1, 'one')")
    try await company.adopt("--table", "tasks")
    let run = try company.stage.run()
    _ = try await run.line { $0.contains("a mirror runs") }
    try await company.stage.quiet()
    try await Self.apply(company.stage) { schema in
      schema.tables["tasks"]?.definition?.columns = [DeclaredColumn("title", .blob)]
    }
    _ = try await run.line { $0.contains("encode") }
    try company.stage.sql("INSERT INTO tasks VALUES (2, 'two'); UPDATE tasks SET title = 'three'")
    #expect(
      try company.stage.rows("SELECT count(*)::text FROM ferry_mirror.captured") != [["0"]])
    // The writes travel once the definition is right again.
    try await Self.apply(company.stage) { schema in
      schema.tables["tasks"]?.definition?.columns = [DeclaredColumn("title", .text)]
    }
    try await company.stage.quiet()
    run.send(SIGTERM)
    _ = try await run.exitStatus()
  }

  @Test("a schema whose default contains U+0000 is refused with the reason")
  func zero() async throws {
    let server = try await Server.start()
    let device = try await Device.joined(server.url)
    let file = device.directory.file("schema.json")
    try Data(
      #"""
      {"version":1,"tables":{"t":{"definition":{"key":"id",
        "columns":[{"name":"c","type":"text","default":"a\u0000b"}]}}}}
      """#.utf8
    ).write(to: file)
    let refused = try await device.ferry("schema", "apply", file.path, exits: 2)
    #expect(refused.error.contains("U+0000"))
    let answer = try await Wire.send(
      .put, "\(server.url)/v1/spaces/\(Device.space)/schema", body: Array(Data(contentsOf: file)))
    #expect(answer.status == 400)
    #expect(answer.text.contains("U+0000"))
  }
}
