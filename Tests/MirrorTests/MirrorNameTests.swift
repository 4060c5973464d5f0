import FerryPersistence
import FerryPostgres
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerryMirror

/// Easily confused names, defaults and values, in all SQL of a mirror. A real PostgreSQL and SQLite
/// read the SQL; their catalogs have to name everything byte for byte.
@Suite("Random names in mirrored tables", .hangLimit)
struct MirrorNameTests {
  /// Two tables of a space, in a schema of PostgreSQL.
  private struct Sample {
    var place = ""
    var tables: [Name] = []
    var columns: [Name] = []
    var schema = SpaceSchema.empty
    private var samples: NameSamples

    init(seed: UInt64) throws {
      samples = NameSamples(seed: seed)
      repeat { place = name().text } while place.utf8.starts(with: "pg_".utf8) || place == "public"
      tables = distinct(2)
      columns = distinct(7)
      let key: DeclaredKey = .text(columns[0])
      schema.tables[tables[0]] = rules(DeclaredTable(key: key, columns: []))
      var child = DeclaredTable(key: key, columns: [])
      child.columns = [
        DeclaredColumn(columns[1], .text, isRequired: true, defaultValue: .text(text())),
        DeclaredColumn(columns[2], .text, defaultValue: .text(text())),
        DeclaredColumn(columns[3], .blob, defaultValue: .blob(Array(text().utf8))),
        DeclaredColumn(columns[4], .integer, defaultValue: .integer(.min)),
        DeclaredColumn(columns[5], .real, defaultValue: .real(-1e300)),
        DeclaredColumn(columns[6], .text),
      ]
      child.unique = [[columns[1], columns[2]]]
      child.indexes = [[columns[2], columns[6]]]
      child.references = [DeclaredReference([columns[6]], to: tables[0], onDelete: .cascade)]
      schema.tables[tables[1]] = rules(child)
      // As it comes from the server.
      schema = try SpaceSchema(decoding: schema.encoded())
    }

    private func rules(_ table: DeclaredTable) -> TableRules {
      var rules = TableRules.standard
      rules.definition = table
      return rules
    }

    /// Returns a name acceptable to a mirror.
    mutating func name() -> Name {
      while true {
        let name = Name(samples.name())
        if name.utf8.count <= 63, !NameRule.isReserved(table: name) { return name }
      }
    }

    private mutating func distinct(_ count: Int) -> [Name] {
      var (names, seen): ([Name], Set<Name>) = ([], [])
      while names.count < count {
        let name = name()
        if seen.insert(name.folded).inserted { names.append(name) }
      }
      return names
    }

    /// Returns a text valid in both databases.
    mutating func text() -> String {
      while true {
        let text = samples.text()
        if !text.utf8.contains(0) { return text }
      }
    }

    var configuration: MirrorConfiguration {
      MirrorConfiguration(
        name: "crm", server: "http://127.0.0.1:1", space: "demo", database: "", schema: place)
    }

    var child: DeclaredTable? { schema.tables[tables[1]]?.definition }
  }

  private static func connection() throws -> PostgresConnection {
    let connection = try PostgresConnection(url: try PostgresCluster.shared().createDatabase())
    // As all connections of mirrors.
    try connection.execute("SET jit = off")
    try connection.execute("CREATE TABLE canary(n int); INSERT INTO canary VALUES (7)")
    return connection
  }

  private static func names(_ sql: String, _ connection: PostgresConnection) throws -> [Name?] {
    try connection.query(.once(sql)).map { try $0.ifPresent(0, as: String.self).map { Name($0) } }
  }

  private static func checkCanary(_ connection: PostgresConnection) throws {
    #expect(try names("SELECT n::text FROM public.canary", connection) == ["7"])
    #expect(
      try names(
        "SELECT count(*)::text FROM pg_class WHERE relnamespace = 'public'::regnamespace",
        connection) == ["1"])
  }

  // MARK: Tables of a mirror

  @Test(
    "a mirror's tables have the names and defaults of the space byte for byte, and capture writes")
  func own() throws {
    let connection = try Self.connection()
    for seed in UInt64(1)...60 {
      let sample = try Sample(seed: seed)
      let configuration = sample.configuration
      let plan = try configuration.plan(sample.schema)
      #expect(plan.tables.count == 2 && plan.omitted.isEmpty, "seed \(seed)")
      let number = try connection.transaction { connection in
        let tables = MirrorTables(connection: connection, configuration: configuration)
        let number = try tables.enter(again: false).number
        #expect(try tables.make(plan, number, mustBeEmpty: true).isEmpty)
        return number
      }
      try checkCatalog(sample, connection, seed)
      let sql = plan.tables.map { MirrorSQL(table: $0, schema: sample.place, mirror: number) }
      try checkCapture(sample, sql, connection, seed)
      try checkSteps(sql, connection)
      try Self.checkCanary(connection)
      try MirrorLedger(number: number).remove(connection)
      try connection.execute(single: "DROP SCHEMA \(quoted(Name(sample.place))) CASCADE")
    }
  }

  private func checkCatalog(
    _ sample: Sample, _ connection: PostgresConnection, _ seed: UInt64
  ) throws {
    let place = quoted(postgres: sample.place)
    let tables = try Self.names(
      """
      SELECT relname::text FROM pg_class WHERE relkind = 'r'
        AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = \(place))
      """, connection)
    #expect(Set(tables) == Set(sample.tables.map { Optional($0) }), "seed \(seed)")
    let columns = try Self.names(
      """
      SELECT attname::text FROM pg_attribute WHERE attnum > 0
        AND attrelid = \(quoted(postgres: target(sample)))::regclass ORDER BY attnum
      """, connection)
    #expect(columns == sample.columns.map { Optional($0) }, "seed \(seed)")
  }

  private func target(_ sample: Sample) -> String {
    "\(quoted(Name(sample.place))).\(quoted(sample.tables[1]))"
  }

  /// Writes a row with all defaults, and looks at it in the table and in the captured write.
  private func checkCapture(
    _ sample: Sample, _ sql: [MirrorSQL], _ connection: PostgresConnection, _ seed: UInt64
  ) throws {
    let key = "it''s \\ \u{600}"
    try connection.execute(
      "INSERT INTO \(target(sample))(\(quoted(sample.columns[0]))) VALUES (\(quoted(postgres: key)))"
    )
    let ledger = MirrorLedger(number: sql[0].mirror)
    let write = try #require(try ledger.captured(connection).writes.first)
    #expect(Name(write.table) == sample.tables[1] && write.key == [key], "seed \(seed)")
    #expect(write.names.map { Name($0) } == Array(sample.columns.dropFirst()), "seed \(seed)")
    let columns = try #require(sample.child).columns
    for (column, text) in zip(columns, write.values) {
      let mirrored = try #require(sql[1].table.column(column.name))
      let value = try mirrored.value(of: text)
      if case .text(let text) = value, case .text(let expected) = column.defaultValue {
        #expect(text.utf8.elementsEqual(expected.utf8), "seed \(seed)")
      } else {
        #expect(value == column.defaultValue, "seed \(seed)")
      }
    }
    let text = quoted(sample.columns[6])
    try connection.execute(
      """
      INSERT INTO \(quoted(Name(sample.place))).\(quoted(sample.tables[0])) VALUES ('p');
      UPDATE \(target(sample)) SET \(text) = 'p'
      """)
    let update = try #require(try ledger.captured(connection).writes.last)
    #expect(update.names.map { Name($0) } == [sample.columns[6]] && update.values == ["p"])
  }

  /// Runs each further statement of a mirror over the rows.
  private func checkSteps(_ sql: [MirrorSQL], _ connection: PostgresConnection) throws {
    try connection.transaction { connection in
      for sql in sql {
        let (step, comparison) = (StepSQL(sql: sql), ComparisonSQL(sql: sql))
        let recapture = RecaptureSQL(sql: sql)
        var keys = PostgresParameters()
        keys.append(PostgresArray<String>(["one"]))
        var rows = keys
        for _ in sql.table.columns { rows.append(PostgresArray<String>([nil])) }
        if sql.table.columns.count > 1 {
          rows = keys
          for column in sql.table.columns {
            rows.append(PostgresArray<String>([try column.text(of: column.defaultValue)]))
          }
        }
        _ = try connection.query(.once(step.lock), keys)
        #expect(try connection.query(.once(step.isWritten), keys).isEmpty)
        for isDelete in [false, true] {
          _ = try connection.query(.once(step.begin(isDelete: isDelete)))
        }
        if let update = step.update { _ = try connection.query(.once(update), rows) }
        _ = try connection.query(.once(try #require(step.insert)), rows)
        if let vacate = step.vacate { _ = try connection.query(.once(vacate), keys) }
        _ = try connection.query(.once(step.forget), keys)
        _ = try connection.query(.once(step.forgetOverwritten), keys)
        try connection.execute(single: comparison.makeCopy)
        _ = try connection.query(.once(comparison.fillCopy), rows)
        _ = try connection.query(.once(comparison.differences(withDeferred: true)))
        try connection.execute("DROP TABLE ferry_copy")
        for isInTable in [true, false] {
          _ = try connection.query(
            .once(recapture.recapture(isInTable: isInTable)), [.array(PostgresArray(["one"]))])
        }
        _ = try connection.query(.once(step.delete), keys)
        for forget in [step.resolve, step.freeHeld, step.forgetGone] {
          _ = try connection.query(.once(forget), keys)
        }
        _ = try connection.query(.once(recapture.forgetAbsent))
      }
    }
    for sql in sql { try connection.transaction { try checkLog(sql, $0) } }
  }

  /// Runs the SQL of a capture from the log.
  private func checkLog(_ sql: MirrorSQL, _ connection: PostgresConnection) throws {
    var (sql, keys) = (sql, PostgresParameters())
    sql.capture = .log
    let step = StepSQL(sql: sql)
    keys.append(PostgresArray<String>(["one"]))
    for statement in MirrorLog.capture([sql.target], [sql.target], sql.mirror) {
      try connection.execute(single: statement)
    }
    let rows: PostgresParameters = [
      .array(PostgresArray<Int64>([0])), .array(PostgresArray<String>(["700"])),
      .array(PostgresArray<Int64>([0])), .array(PostgresArray<Int64>([nil])),
      .array(PostgresArray<String>([nil])), .array(PostgresArray<String>([nil])),
    ]
    let logged = LoggedParts([LoggedMirror(sql.mirror, [sql], isOfGroup: false)])
    _ = try connection.query(.once(logged.capture([0])), rows)
    _ = try connection.query(.once(step.begin(isDelete: true)))
    _ = try connection.query(.once(step.forget), keys)
    _ = try connection.query(.once(step.forgetOverwritten), keys)
    for forgotten in [LogMark.Forgotten.all, .overwritten, .updates] {
      _ = try connection.query(
        .once(
          LoggedParts.forgetCaptured(forgotten, of: sql.mirror, LoggedRowsSQL(sql: sql).table)),
        [.text("700"), .text("[[\"one\"]]")])
    }
    _ = try connection.query(.once(step.own(step.delete)), keys)
    let answer = AnswerSQL(sql: sql).captureRefused(isDelete: true)
    keys.append(PostgresArray<String>(["refused"]))
    _ = try connection.query(.once(step.made(answer)), keys)
  }

  // MARK: The file

  @Test("a mirror's file has the names and defaults byte for byte, and notes changed rows")
  func file() async throws {
    for seed in UInt64(1)...60 {
      let sample = try Sample(seed: seed)
      let plan = try sample.configuration.plan(sample.schema)
      let file = MirrorFile(plan: plan)
      let folder = try TemporaryDirectory()
      let database = try await LocalDatabase.open(folder.file("mirror.db").path)
      try await database.write { database in
        try database.connection.addFunction("change_author", argumentCount: 0, callers: .all) {
          $1.setNull()
        }
        try database.execute(
          "CREATE TABLE \"the canary\"(n); INSERT INTO \"the canary\" VALUES (7)")
        for name in sample.tables {
          try database.execute(
            single: "CREATE TABLE \(quoted(name))(\(quoted(sample.columns[0])) TEXT PRIMARY KEY)")
        }
        try file.addColumns(database)
        for _ in 0..<2 { try file.prepare(database) }
        try database.execute(
          single:
            "INSERT INTO \(quoted(sample.tables[1]))(\(quoted(sample.columns[0]))) VALUES ('k')")
        let row = try #require(
          try database.query("SELECT * FROM \(quoted(sample.tables[1]))").first)
        #expect(row.names.map { Name($0) } == sample.columns, "seed \(seed)")
        let defaults = try #require(sample.child).columns.map(\.defaultValue)
        #expect(Array(row.values.dropFirst()) == defaults, "seed \(seed)")
        #expect(try file.hasChanges(database))
        let made = try database.query("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        let expected = sample.tables.flatMap { table in
          ["insert", "update", "delete"].map { Value.text("mirror.\($0).\(table)") }
        }
        #expect(Set(made.flatMap(\.values)) == Set(expected), "seed \(seed)")
        var taken = CapturedWrite(
          id: 1, tries: 0, transaction: "7", table: sample.tables[1].text, kind: .update,
          key: ["k"], names: [sample.columns[2].text], values: ["new"], former: [nil])
        let writer = MirrorTaking(file: file, database: database)
        #expect(try writer.apply(CapturedWrites(writes: [taken])).isEmpty, "seed \(seed)")
        taken.kind = .rekey
        (taken.id, taken.former, taken.key) = (2, ["k"], ["l"])
        #expect(try writer.apply(CapturedWrites(writes: [taken])).isEmpty, "seed \(seed)")
        #expect(try database.query("SELECT n FROM \"the canary\"").map(\.values) == [[7]])
        #expect(try database.query("SELECT name FROM pragma_database_list").count == 1)
        let turn = try file.beginTurn(database)
        var rows = 0
        try file.changes(before: turn, database.connection) { _ in rows += 1 }
        #expect(rows >= 1)
        try file.endTurn(turn, database)
      }
      await database.close()
    }
  }

  // MARK: A company's tables

  @Test(
    "adopted tables keep their names byte for byte, and values name spaces whatever they contain")
  func adopted() throws {
    let connection = try Self.connection()
    for seed in UInt64(1)...40 {
      var sample = try Sample(seed: seed)
      let (table, space) = (sample.tables[0], sample.columns[1])
      let value = "v" + sample.text()
      let target = "\(quoted(Name(sample.place))).\(quoted(table))"
      try connection.execute(single: "CREATE SCHEMA \(quoted(Name(sample.place)))")
      try connection.execute(
        single: """
          CREATE TABLE \(target)(\(quoted(sample.columns[0])) text PRIMARY KEY,
            \(quoted(space)) text, \(quoted(sample.columns[2])) text
            DEFAULT \(quoted(postgres: sample.text())))
          """)
      var configuration = sample.configuration
      configuration.tables = [table.text]
      configuration.adoptions[table.text] = MirrorAdoption(
        space: SpaceColumn(space.text, value: value))
      let plan = try TableAdoption(configuration).plan(connection)
      let adoption = TableAdoption(TableAdoption(configuration).configuration(for: plan))
      let schema = try #require(try plan.added(to: .empty))
      #expect(Array(schema.tables.keys) == [table])
      let mirrored = try TableAdoption(configuration).configuration(for: plan).plan(schema)
      let ledger = try adoption.install(mirrored, again: false, connection)
      let rows = [("a", value), ("b", value + "\u{301}"), ("c", "other")]
      for (key, value) in rows {
        try connection.execute(
          single: """
            INSERT INTO \(target)(\(quoted(sample.columns[0])), \(quoted(space)))
            VALUES ('\(key)', \(quoted(postgres: value)))
            """)
      }
      let writes = try ledger.captured(connection).writes
      #expect(writes.map(\.key) == [["a"]], "seed \(seed)")
      #expect(writes.first.map { Name($0.table) } == table)
      #expect(writes.first?.names.map { Name($0) } == [sample.columns[2]], "seed \(seed)")
      try connection.transaction { connection in
        let group = try MirrorGroupTables(entering: "group", connection)
        try group.watch(table.text, column: space.text, in: sample.place, connection)
        #expect(
          Set(try group.wanted(connection).map { Name($0.value) })
            == [Name(value + "\u{301}"), "other"], "seed \(seed)")
      }
      try MirrorGroupTables("group", connection)?.remove(connection)
      try ledger.remove(connection)
      #expect(
        try Self.names("SELECT tgname::text FROM pg_trigger WHERE tgname LIKE 'ferry%'", connection)
          .isEmpty)
      try Self.checkCanary(connection)
      try connection.execute(single: "DROP SCHEMA \(quoted(Name(sample.place))) CASCADE")
    }
  }
}
