import Ferry
import FerryPostgres
import FerryTestSupport
import Foundation
import Testing

/// Columns of a company with types unknown to devices.
@Suite("Types of adopted columns", .hangLimit)
struct MirrorTypeTests {
  private typealias Company = MirrorAdoptionTests.Company

  /// Settings of a database that change the texts of values.
  private static let hostile = """
    DO $$ BEGIN
      EXECUTE format('ALTER DATABASE %I SET DateStyle = ''German, DMY''', current_database());
      EXECUTE format('ALTER DATABASE %I SET IntervalStyle = ''sql_standard''', current_database());
      EXECUTE format('ALTER DATABASE %I SET extra_float_digits = -15', current_database());
      EXECUTE format('ALTER DATABASE %I SET bytea_output = ''escape''', current_database());
      EXECUTE format('ALTER DATABASE %I SET TimeZone = ''America/St_Johns''', current_database());
      EXECUTE format('ALTER DATABASE %I SET xmloption = ''document''', current_database());
    END $$;
    """

  private struct Column: Sendable {
    var name: String
    var type: String
    /// The SQL of a value, and the value on devices.
    var first: (sql: String, device: Value)
    var second: (sql: String, device: Value)
  }

  private static func column(
    _ name: String, _ type: String, _ first: String, _ text: Value, _ second: String, _ other: Value
  ) -> Column {
    Column(name: name, type: type, first: (first, text), second: (second, other))
  }

  private static let types = """
    CREATE EXTENSION citext;
    CREATE SCHEMA "x y";
    CREATE TYPE "x y"."a""b" AS ENUM ('q''1', 'b');
    CREATE DOMAIN year AS int CHECK (value BETWEEN 1900 AND 2100);
    CREATE DOMAIN late_year AS year CHECK (value > 2000);
    CREATE DOMAIN code AS varchar(5);
    CREATE TYPE pair AS (a int, b timestamptz, c float8, d bytea, e text);

    """

  private static let columns: [Column] = [
    column("mood", #""x y"."a""b""#, "'q''1'", "q'1", "'b'", "b"),
    column("word", "citext", "'Abc'", "Abc", "'aBC'", "aBC"),
    column("released", "late_year", "2006", 2006, "2026", 2026),
    column("short", "code", "'a'", "a", "'b'", "b"),
    column("at", "time", "'18:00:00.5'", "18:00:00.5", "'24:00'", "24:00:00"),
    column("zoned", "timetz", "'18:00+02'", "18:00:00+02", "'18:00-03:30'", "18:00:00-03:30"),
    column(
      "span", "interval", "make_interval(months => -1, days => 2, secs => -11045.6)",
      "P-1M2DT-3H-4M-5.6S", "make_interval(hours => -24)", "PT-24H"),
    column("ip", "inet", "'192.168.1.1'", "192.168.1.1", "'::1/64'", "::1/64"),
    column("net", "cidr", "'10.0.0.0/8'", "10.0.0.0/8", "'::/0'", "::/0"),
    column(
      "mac", "macaddr", "'08:00:2b:01:02:03'", "08:00:2b:01:02:03", "'08:00:2b:01:02:04'",
      "08:00:2b:01:02:04"),
    column("bits", "bit(3)", "'101'", "101", "'011'", "011"),
    column("more", "varbit", "'10110'", "10110", "''", ""),
    column(
      "doc", "xml", "XMLPARSE(CONTENT '<a>1</a><b/>')", "<a>1</a><b/>", "XMLPARSE(CONTENT 'x')", "x"
    ),
    column("words", "tsvector", "'fat:2A cat'", "'cat' 'fat':2A", "''", ""),
    column("query", "tsquery", "'a & !b'", "'a' & !'b'", "'c'", "'c'"),
    column("few", "int4range", "'(1,4]'", "[2,5)", "'empty'", "empty"),
    column("sets", "int4multirange", "'{[1,3),[5,7)}'", "{[1,3),[5,7)}", "'{}'", "{}"),
    column(
      "during", "tstzrange", "'[2026-01-02 00:00:00+00,2026-02-01 12:00:00.5+00)'",
      #"["2026-01-02 00:00:00+00","2026-02-01 12:00:00.5+00")"#, "'[2026-01-02 00:00+01,)'",
      #"["2026-01-01 23:00:00+00",)"#),
    column(
      "two", "pair", #"ROW(1, '2026-01-02 00:00+00', 0.1, '\x00ff', 'a "b"')"#,
      #"(1,"2026-01-02 00:00:00+00",0.1,"\\x00ff","a ""b""")"#,
      "ROW(NULL, 'infinity', 0.30000000000000004, NULL, '')",
      #"(,infinity,0.30000000000000004,,"")"#),
    column("letter", #""char""#, "'x'", "x", "'y'", "y"),
    column("called", "name", "'a b'", "a b", "'c'", "c"),
    column("object", "oid", "42", "42", "4294967295", "4294967295"),
    column(
      "place", "point", "'(0.1,0.30000000000000004)'", "(0.1,0.30000000000000004)", "'(-0,1e20)'",
      "(-0,1e+20)"),
    column(
      "tags", "text[]", #"'{a,"b c",NULL,"q\"\\","NULL",""}'"#,
      #"["a","b c",null,"q\"\\","NULL",""]"#, "'{}'", "[]"),
    column("grid", "int[]", "'{{1,2},{3,NULL}}'", "[[1,2],[3,null]]", "'{5}'", "[5]"),
    column(
      "amounts", "numeric(10,2)[]", "'{1.50,NaN,NULL}'", #"[1.50,"NaN",null]"#,
      "'{12345678.90}'", "[12345678.90]"),
    column(
      "weights", "float8[]", "'{0.1,0.30000000000000004,NaN,-0,-Infinity,1e20}'",
      #"[0.1,0.30000000000000004,"NaN",-0,"-Infinity",1e+20]"#, "'{2}'", "[2]"),
    column("flags", "boolean[]", "'{t,f,NULL}'", "[true,false,null]", "'{t}'", "[true]"),
    column(
      "times", "timestamptz[]", "'{2026-11-25 18:00+00,infinity}'",
      #"["2026-11-25T18:00:00+00:00","infinity"]"#, "'{2026-03-01 00:00:00.000001+05:30}'",
      #"["2026-02-28T18:30:00.000001+00:00"]"#),
    column(
      "days", "date[]", "'{2026-03-04}'", #"["2026-03-04"]"#, "'{0044-03-15 BC}'",
      #"["0044-03-15 BC"]"#),
    column("spans", "interval[]", "'{1 year,-1 sec}'", #"["P1Y","PT-1S"]"#, "'{0}'", #"["PT0S"]"#),
    column("blobs", "bytea[]", #"'{"\\x00ff",""}'"#, #"["\\x00ff","\\x"]"#, "'{NULL}'", "[null]"),
    column(
      "docs", "jsonb[]", #"ARRAY['{"a":"b"}', 'null', NULL]::jsonb[]"#,
      #"["{\"a\": \"b\"}","null",null]"#, #"ARRAY['"x"']::jsonb[]"#, #"["\"x\""]"#),
    column(
      "moods", #""x y"."a""b"[]"#, #"'{q''1,NULL}'"#, #"["q'1",null]"#, "'{b}'", #"["b"]"#),
    column("years", "year[]", "'{1999,2001}'", #"["1999","2001"]"#, "'{2000}'", #"["2000"]"#),
    column(
      "pairs", "pair[]", "ARRAY[ROW(1, NULL, 0.1, NULL, 'x')]::pair[]", #"["(1,,0.1,,x)"]"#,
      "'{}'", "[]"),
  ]

  private static func table() -> String {
    let definitions = columns.map { "\($0.name) \($0.type)" }.joined(separator: ", ")
    let values = columns.map(\.first.sql).joined(separator: ", ")
    return types + "CREATE TABLE things(id year PRIMARY KEY, \(definitions), "
      + "kind \"x y\".\"a\"\"b\" NOT NULL DEFAULT 'b');"
      + "INSERT INTO things VALUES (1901, \(values)); INSERT INTO things(id) VALUES (1902);"
  }

  private static var names: String { columns.map(\.name).joined(separator: ", ") }

  private static func sets(_ value: (Column) -> String) -> String {
    columns.map { "\($0.name) = \(value($0))" }.joined(separator: ", ")
  }

  @Test(
    "values travel both ways exactly, whatever the settings of the database are",
    arguments: ["triggers", "log"])
  func exact(_ capture: String) async throws {
    let company = try await Company.make(Self.hostile)
    let (stage, device) = (company.stage, company.device)
    try stage.sql(Self.table())
    let made = try await company.adopt("--table", "things", "--capture", capture)
    #expect(!made.output.contains("left out"), "\(made.output)")
    try await company.join()
    let query = "SELECT \(Self.names) FROM things WHERE id = "
    let (first, second) = (Self.columns.map(\.first.device), Self.columns.map(\.second.device))
    #expect(try await device.rows(query + "1901") == [first])
    #expect(try await device.rows("SELECT kind FROM things") == [["b"], ["b"]])
    let run = try stage.run()
    // A device's copies are the same values in the table, to the bit.
    let copies = Self.sets { "(SELECT \($0.name) FROM things WHERE id = 1901)" }
    try await device.write(
      "UPDATE things SET \(copies) WHERE id = 1902; INSERT INTO things(id) VALUES (1903)")
    try await device.exchangeAll()
    let row = { (row: String) in
      "(SELECT r FROM (SELECT \(Self.columns.map { "\(row).\($0.name)" }.joined(separator: ", "))) r)"
    }
    let equal = """
      SELECT count(*)::text FROM things a, things b WHERE a.id = 1901 AND b.id <> 1903
        AND \(row("a")) *= \(row("b"))
      """
    try await stage.eventuallyRows(equal, [["2"]])
    try await stage.eventuallyRows(
      "SELECT kind::text, words::text FROM things WHERE id = 1903", [["b", nil]])
    // Programs' writes, of few rows and of many.
    try stage.sql("UPDATE things SET \(Self.sets(\.second.sql)) WHERE id = 1902")
    try stage.sql(
      """
      INSERT INTO things(id, \(Self.names)) SELECT 1903 + i, \(Self.names)
        FROM things, generate_series(1, 40) i WHERE id = 1901;
      UPDATE things SET \(Self.sets(\.second.sql)) WHERE id > 1903
      """)
    try await stage.quiet()
    try await eventually("the device has the second values") {
      try await device.exchangeAll()
      return try await device.rows(query + "1902") == [second]
    }
    #expect(try await device.rows(query + "1943") == [second])
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
    try await stage.mirror(["remove", "crm"])
  }

  @Test("values that the other side cannot hold stop nothing, and are named")
  func refused() async throws {
    let company = try await Company.make(Self.table())
    let (stage, device) = (company.stage, company.device)
    try stage.sql("UPDATE things SET grid = '[0:1]={1,2}' WHERE id = 1902")
    try await company.adopt("--table", "things")
    let named = try await stage.mirror(["status", "crm"], exits: 4).output
    #expect(named.contains("things 1902: devices cannot hold the value of column grid"))
    try await company.join()
    let run = try stage.run()
    try stage.sql("UPDATE things SET grid = '{1,2}' WHERE id = 1902")
    try await eventually("the device has the row") {
      try await device.exchangeAll()
      return try await device.rows("SELECT grid FROM things WHERE id = 1902") == [["[1,2]"]]
    }
    for change in [
      "mood = 'other'", "released = 1950", "short = 'toolong'", "bits = '1'", "tags = '[1'",
      "grid = '[[1],[2,3]]'", "amounts = '[1.005]'", "words = 'b a'", "doc = '<a>'",
      "span = '1 day'", "word = x'00'",
    ] {
      try await device.write("UPDATE things SET \(change), object = 7 WHERE id = 1901")
    }
    try await device.write("INSERT INTO things(id) VALUES (7)")
    try await device.exchangeAll()
    try await eventually("the device has the table's row") {
      try await device.exchangeAll()
      try await stage.quiet()
      let row = try await device.rows(
        "SELECT \(Self.names) FROM things WHERE id = 1901"
      ).first
      let isAdded = try await device.rows("SELECT id FROM things WHERE id = 7") != []
      return row == Self.columns.map(\.first.device) && !isAdded
    }
    // A value in another form is the table's form on devices.
    try await device.write(
      "UPDATE things SET amounts = '[1.005]', words = 'b a', span = '1 day' WHERE id = 1902")
    try await eventually("the device has the forms of the table") {
      try await device.exchangeAll()
      return try await device.rows("SELECT amounts, words, span FROM things WHERE id = 1902")
        == [["[1.01]", "'a' 'b'", "P1D"]]
    }
    run.send(SIGTERM)
    _ = try await run.exitStatus()
    #expect(try await stage.mirror(["verify", "crm"]).output == "0 rows differ\n")
  }
}
