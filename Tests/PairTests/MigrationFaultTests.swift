import FerrySyncClient
import Testing

/// Tables unfit for sync after a migration, and refused migrations.
extension MigrationTests {
  @Test("a table that cannot be recorded any more is reported, and the others are synced")
  func unusable() async throws {
    let pair = try await Pair.make(
      schema: Self.schema + "; CREATE TABLE tasks(id TEXT PRIMARY KEY, done INTEGER)",
      tracking: ["notes", "tasks"])
    try pair.one.edit(
      "DROP TABLE notes; CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT, n INTEGER)")
    try await pair.one.write("INSERT INTO tasks VALUES ('t', 1)")
    let found = try await pair.one.ferry("sync", "--json", exits: 4)
    #expect(found.error.contains("table notes is not synced") && found.error.contains("why: "))
    #expect(try ExchangeReport(found).pushed == 1)
    let status = try await pair.one.open().status()
    #expect(status.tableFaults.map(\.table) == ["notes"])
  }

  @Test("a table that another program renamed is not recorded under its old name")
  func renamedTable() async throws {
    let pair = try await make()
    try pair.one.edit("ALTER TABLE notes RENAME TO memos")
    let found = try await pair.one.ferry("sync", exits: 4)
    #expect(found.error.contains("there is no such table"))
    try await pair.one.write("INSERT INTO memos VALUES ('m', 'memo', 1)")
    #expect(try await pair.one.status().pending == 0)
    try pair.one.edit("ALTER TABLE memos RENAME TO notes")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'm'") == "memo")
  }

  @Test("commands list a renamed table by its name in the file, and suggest that name")
  func listedNames() async throws {
    let pair = try await make()
    try await pair.one.ferry("rename", "notes", "memos")
    #expect(try await pair.one.ferry("status").output.contains("tables        memos\n"))
    for command in ["status", "spaces", "track"] {
      let found = try await pair.one.ferry(command, "--json").output
      #expect(found.contains("memos") && !found.contains("notes"), "\(command): \(found)")
    }
    #expect(try await pair.one.ferry("track").output == "tracked: memos\n")
    try pair.one.edit("DROP TABLE memos; CREATE TABLE memos(id INTEGER PRIMARY KEY, body TEXT)")
    let found = try await pair.one.ferry("sync", exits: 4)
    #expect(found.error.contains("table memos is not synced"), "\(found.error)")
    #expect(found.error.contains("`ferry untrack memos`"), "\(found.error)")
    try await pair.one.ferry("untrack", "memos")
  }

  @Test("a table in another spelling syncs under the name of the space", arguments: [true, false])
  func otherSpelling(byAnotherProgram isForeign: Bool) async throws {
    let pair = try await make()
    let sql = """
      CREATE TABLE t AS SELECT * FROM notes; DROP TABLE notes;
      CREATE TABLE NOTES(id TEXT PRIMARY KEY, body TEXT, n INTEGER); INSERT INTO NOTES SELECT * FROM t
      """
    if isForeign { try pair.one.edit(sql) } else { try await pair.one.write(sql) }
    try await pair.one.ferry("sync")
    try await pair.one.ferry("verify")
    try await pair.one.write("UPDATE notes SET body = 'w'")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'a'") == "w")
    try await pair.one.write("UPDATE notes SET body = 'x'")
    try await pair.one.write("CREATE TABLE u AS SELECT * FROM NOTES; DROP TABLE NOTES")
    try await pair.one.write(Self.schema + "; INSERT INTO notes SELECT * FROM u")
    try await settle(pair.one, pair.two)
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'a'") == "x")
  }

  @Test(
    "a row that cannot be recorded is reported, and all others are sent",
    arguments: [
      "'', 'e', 1", "hex(zeroblob(300)), 'e', 1", "NULL, 'e', 1", "'z', hex(zeroblob(600000)), 1",
    ])
  func unusableRow(_ values: String) async throws {
    let pair = try await make()
    try pair.one.edit(Self.rebuilt + "INSERT INTO notes VALUES (\(values))")
    let found = try await pair.one.ferry("sync", exits: 4)
    #expect(found.error.contains("table notes") && found.error.contains("row"), "\(found.error)")
    try await pair.two.exchange()
    #expect(try await pair.two.value("SELECT body FROM notes WHERE id = 'a'") == "ONE")
    #expect(try await pair.one.ferry("verify", exits: 4).error.contains("table notes"))
    try await pair.one.write("DELETE FROM notes WHERE body = 'e' OR id = 'z'")
    try await settle(pair.one, pair.two)
  }

  @Test("a verification reports a missing table, and leaves a migrated one to the sync")
  func verified() async throws {
    let pair = try await make()
    try pair.one.edit(Self.rebuilt)
    let migrated = try await pair.one.ferry("verify", "--repair", exits: 4)
    #expect(migrated.error.contains("`ferry sync`"))
    #expect(try await pair.one.value("SELECT body FROM notes WHERE id = 'a'") == "ONE")
    try await pair.one.write("DROP TABLE notes")
    let gone = try await pair.one.ferry("verify", exits: 4)
    #expect(gone.error.contains("table notes"))
  }

  @Test("dropping a table is refused if a table in between would delete tracked rows")
  func grandparents() async throws {
    let pair = try await make()
    try await pair.one.write(
      """
      CREATE TABLE p(id TEXT PRIMARY KEY);
      CREATE TABLE mid(id TEXT PRIMARY KEY, p TEXT REFERENCES p ON DELETE CASCADE);
      CREATE TABLE g(id TEXT PRIMARY KEY, m TEXT REFERENCES mid ON DELETE CASCADE);
      INSERT INTO p VALUES ('p'); INSERT INTO mid VALUES ('m', 'p'); INSERT INTO g VALUES ('g', 'm')
      """)
    try await pair.one.ferry("track", "g")
    let refused = try await pair.one.ferry("sql", "DROP TABLE p", exits: 1)
    #expect(refused.error.contains("ON DELETE"))
    #expect(try await pair.one.rows("SELECT * FROM g").count == 1)
  }

  @Test("dropping a table is refused if it would delete rows of another table")
  func parents() async throws {
    let pair = try await Pair.make(
      schema: """
        CREATE TABLE lists(id TEXT PRIMARY KEY, name TEXT);
        CREATE TABLE items(id TEXT PRIMARY KEY, list TEXT REFERENCES lists ON DELETE CASCADE)
        """, tracking: ["lists", "items"])
    try await pair.one.write(
      "INSERT INTO lists VALUES ('l', 'x'); INSERT INTO items VALUES ('i', 'l')")
    let refused = try await pair.one.ferry("sql", "DROP TABLE lists", exits: 1)
    #expect(refused.error.contains("lists cannot be dropped") && refused.error.contains("items"))
    #expect(try await pair.one.rows("SELECT * FROM items").count == 1)
    try await pair.one.write("DELETE FROM items")
    try await pair.one.write("DROP TABLE lists")
  }
}
