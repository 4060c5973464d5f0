import FerrySQLite
import FerryTestSupport
import Testing

@Suite("Foreign keys", .hangLimit)
struct ForeignKeyTests {
  let file: DatabaseFile
  let connection: SQLiteConnection

  init() throws {
    file = try DatabaseFile()
    connection = try file.open()
    try connection.execute(
      """
      PRAGMA foreign_keys=ON;
      CREATE TABLE parent(id INTEGER PRIMARY KEY);
      CREATE TABLE child(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent ON DELETE RESTRICT);
      """)
  }

  private func addChild() throws {
    try connection.foreignKeyStatement("INSERT INTO child VALUES (1, 1)").run()
  }

  private func addParent() throws {
    try connection.foreignKeyStatement("INSERT INTO parent VALUES (1)").run()
  }

  private func removeParent() throws {
    try connection.foreignKeyStatement("DELETE FROM parent WHERE id = 1").run()
  }

  @Test("foreign keys are deferred to the end of one transaction, even for prepared statements")
  func deferred() throws {
    for _ in 0..<2 {
      #expect(throws: SQLiteError.self) { try addChild() }
      try connection.transaction {
        try connection.deferForeignKeys()
        #expect(connection.defersForeignKeys)
        try addChild()
        try addParent()
      }
      #expect(!connection.defersForeignKeys)
      #expect(throws: SQLiteError.self) { try removeParent() }
      try connection.transaction {
        try connection.deferForeignKeys()
        try removeParent()
        try connection.execute("DELETE FROM child")
      }
    }
  }

  @Test("a violation at the end is refused, and the next transaction is not affected")
  func broken() throws {
    let error = #expect(throws: SQLiteError.self) {
      try connection.transaction {
        try connection.deferForeignKeys()
        try addChild()
      }
    }
    #expect(error?.isForeignKey == true)
    #expect(!connection.defersForeignKeys)
    #expect(throws: SQLiteError.self) { try connection.transaction { try addChild() } }
    #expect(try connection.integer("SELECT count(*) FROM child") == 0)
  }

  @Test("prepared statements stay prepared")
  func keepsStatements() throws {
    try connection.transaction {
      try connection.deferForeignKeys()
      try addParent()
    }
    let find = try connection.statement("SELECT count(*) FROM parent")
    try find.run()
    try connection.transaction {
      try connection.deferForeignKeys()
      try find.run()
    }
    #expect(find.preparationCount == 0)
  }
}
