import FerryPersistence
import FerryProtocol
import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerrySyncClient

@Suite("Recording local writes", .hangLimit)
struct CaptureTests {
  @Test("insert, update and delete are recorded with the changed columns only")
  func kinds() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks VALUES ('a', 'one', 0)")
    try replica.run("UPDATE tasks SET done = 1 WHERE id = 'a'")
    try replica.run("DELETE FROM tasks WHERE id = 'a'")
    let pending = try replica.pending
    #expect(pending.map(\.kind) == [.insert, .update, .delete])
    #expect(pending[0].columns == [Column("title", "one"), Column("done", 0)])
    #expect(pending[1].columns == [Column("done", 1)])
    // The deleted row stays readable until the server confirms.
    #expect(pending[2].columns == [Column("title", "one"), Column("done", 1)])
  }

  @Test("a write that changes nothing is not recorded")
  func unchanged() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks VALUES ('a', 'one', 0)")
    try replica.run("UPDATE tasks SET title = 'one', done = done")
    #expect(try replica.pending.count == 1)
  }

  @Test("values of every class are read back exactly, and 1 is not 1.0")
  func values() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE v(id TEXT PRIMARY KEY, x)")
    try replica.file.track(["v"])
    let values: [Value] = [
      nil, 1, 1.0, -0.0, 0.1, 1e300, .real(.infinity), .integer(.max), .integer(.min),
      .integer(9_007_199_254_740_993), "", "a\u{0}b", "emoji 👩‍👩‍👧 and \" \\ \n", .blob([]),
      .blob([0, 255, 10]), .text(String(repeating: "x", count: 5_000)),
    ]
    for (index, value) in values.enumerated() {
      try replica.run("INSERT INTO v VALUES (?, ?)", [.text("\(index)"), value])
    }
    #expect(try replica.pending.map { $0.columns[0].value } == values)
    try replica.run("UPDATE v SET x = 1.0 WHERE id = '1'")
    #expect(try replica.pending.last?.columns == [Column("x", 1.0)])
  }

  @Test("writes that were made elsewhere before have the times of then, and never go back")
  func late() throws {
    let replica = try ReplicaFixture.withTasks()
    let now = replica.clock.now
    func late(_ ages: [Int64]) throws -> [Int64] {
      let before = try replica.pending.count
      try replica.file.writeMarked { database, marks in
        for (place, age) in ages.enumerated() {
          marks.age = age
          try database.execute("INSERT INTO tasks(id) VALUES ('\(before + place)')")
        }
      }
      return try replica.pending.dropFirst(before).map { $0.time.milliseconds - now }
    }
    #expect(try late([60_000, 5_000, .max, .min]) == [-60_000, -5_000, -5_000, 0])
    replica.clock.now += 1_000
    #expect(try late([3_000]) == [0], "the replica has seen a later time")
    try replica.run("INSERT INTO tasks(id) VALUES ('now')")
    #expect(try replica.pending.last.map { $0.time.milliseconds - now } == 1_000)
  }

  @Test("a transaction is one group, and a rolled back one leaves nothing")
  func groups() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id) VALUES ('a'); INSERT INTO tasks(id) VALUES ('b')")
    try replica.run("INSERT INTO tasks(id) VALUES ('c')")
    struct Stop: Error {}
    #expect(throws: Stop.self) {
      try replica.file.write { database in
        try database.execute("INSERT INTO tasks(id) VALUES ('d')")
        throw Stop()
      }
    }
    let pending = try replica.file.queue.oldest(10)
    #expect(pending.map(\.operation.key.record) == ["a", "b", "c"])
    #expect(pending[0].group == pending[1].group)
    #expect(pending[1].group != pending[2].group)
  }

  @Test("each function of a replica's triggers fails on the connection of another database")
  func guardedFunctions() throws {
    let replica = try ReplicaFixture.withTasks()
    let names = try replica.rows(
      """
      SELECT DISTINCT name FROM pragma_function_list
      WHERE name LIKE 'ferry\\_%' ESCAPE '\\' AND name <> 'ferry_changes'
      """)
    #expect(Set(names) == Set(ReplicaGuard.functions.map { [.text($0)] }))
  }

  @Test("a connection without the library cannot write a tracked table unrecorded")
  func foreignConnection() throws {
    let replica = try ReplicaFixture.withTasks()
    let plain = try SQLiteConnection(path: replica.path)
    let error = #expect(throws: SQLiteError.self) {
      try plain.execute("INSERT INTO tasks(id) VALUES ('x')")
    }
    #expect(error?.message.contains("no such function: ferry_") == true)
    #expect(try replica.rows("SELECT count(*) FROM tasks") == [[0]])
  }

  @Test("a changed key is a delete and an insert; REPLACE records the row that it removes")
  func keys() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("CREATE UNIQUE INDEX by_title ON tasks(title)")
    try replica.run("INSERT INTO tasks VALUES ('a', 'one', 0)")
    try replica.run("UPDATE tasks SET id = 'b'")
    try replica.run("INSERT OR REPLACE INTO tasks VALUES ('c', 'one', 1)")
    let told = try replica.pending.map { "\($0.kind) \($0.key.record)" }
    #expect(told == ["insert a", "delete a", "insert b", "delete b", "insert c"])
  }

  @Test("rows that existed before tracking are recorded as inserts")
  func existing() throws {
    let replica = try ReplicaFixture()
    try replica.run("CREATE TABLE t(id TEXT PRIMARY KEY, n INTEGER)")
    for number in 0..<2_500 {
      try replica.run(
        "INSERT INTO t VALUES (?, ?)", [.text("r\(number)"), .integer(Int64(number))])
    }
    try replica.file.track(["t"])
    let pending = try replica.file.queue.oldest(10_000)
    #expect(pending.count == 2_500)
    #expect(Set(pending.map(\.group)).count == 3)
    #expect(Set(pending.map(\.operation.columns[0].value)).count == 2_500)
  }

  @Test("a column added later is recorded, even within the same transaction")
  func addedColumn() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id) VALUES ('a')")
    try replica.run("ALTER TABLE tasks ADD COLUMN due TEXT; UPDATE tasks SET due = 'today'")
    #expect(try replica.pending.last?.columns == [Column("due", "today")])
  }

  @Test("columns of a tracked table can be renamed and dropped")
  func alteredColumns() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks VALUES ('a', 'one', 0)")
    try replica.run("ALTER TABLE tasks RENAME COLUMN title TO name; UPDATE tasks SET name = 'two'")
    try replica.run("ALTER TABLE tasks DROP COLUMN done; UPDATE tasks SET name = 'three'")
    #expect(
      try replica.pending.map(\.columns).suffix(2) == [
        [Column("name", "two")], [Column("name", "three")],
      ])
  }

  @Test("an ALTER TABLE that fails, or renames a tracked table, leaves no write unrecorded")
  func failedAlteration() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("CREATE INDEX by_title ON tasks(title)")
    try replica.file.write { database in
      #expect(throws: DatabaseError.self) {
        try database.execute("ALTER TABLE tasks DROP COLUMN title")
      }
      #expect(throws: DatabaseError.self) {
        try database.execute("ALTER TABLE tasks ADD COLUMN done INTEGER")
      }
      try database.execute("INSERT INTO tasks(id) VALUES ('a')")
    }
    let error = #expect(throws: ReplicaError.self) {
      try replica.run("ALTER TABLE tasks RENAME TO jobs")
    }
    #expect(error?.description.contains("renameTable") == true)
    try replica.run("INSERT INTO tasks(id) VALUES ('b')")
    #expect(try replica.pending.map(\.key.record) == ["a", "b"])
  }

  @Test("a table that was dropped and created again is recorded again")
  func recreated() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("DROP TABLE tasks")
    try replica.run("CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT, done INTEGER DEFAULT 0)")
    try replica.run("INSERT INTO tasks(id) VALUES ('a')")
    #expect(try replica.pending.map(\.key.record) == ["a"])
  }

  @Test("a row is recorded before the effects of the user's own triggers")
  func userTriggers() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run(
      """
      CREATE TRIGGER repair AFTER INSERT ON TASKS BEGIN
        UPDATE tasks SET title = 'repaired' WHERE id = NEW.id;
      END
      """)
    try replica.run("INSERT INTO tasks(id, title) VALUES ('a', 'given')")
    try replica.reopen()
    try replica.run("INSERT INTO tasks(id, title) VALUES ('b', 'given')")
    let pending = try replica.pending
    #expect(pending.map(\.kind) == [.insert, .update, .insert, .update])
    #expect(pending.map { $0.columns[0].value } == ["given", "repaired", "given", "repaired"])
  }

  @Test("wide tables are captured in parts")
  func wide() throws {
    let replica = try ReplicaFixture()
    let names = (0..<300).map { "c\($0)" }
    try replica.run(
      "CREATE TABLE w(id TEXT PRIMARY KEY, \(names.map { "\($0) INTEGER" }.joined(separator: ", ")))"
    )
    try replica.file.track(["w"])
    try replica.run("INSERT INTO w(id, c0, c150, c299) VALUES ('a', 1, 2, 3)")
    try replica.run("UPDATE w SET c1 = 4, c298 = 5")
    let pending = try replica.pending
    #expect(pending[0].columns.count == 300)
    #expect(pending[0].columns[299] == Column("c299", 3))
    #expect(pending[1].columns == [Column("c1", 4), Column("c298", 5)])
  }

  @Test(
    "tables that cannot be tracked are refused with the reason",
    arguments: [
      ("CREATE TABLE t(id INT, b TEXT COLLATE NOCASE, PRIMARY KEY(id, b))", "NOCASE"),
      ("CREATE TABLE t(id TEXT PRIMARY KEY COLLATE NOCASE, x)", "NOCASE"),
      ("CREATE TABLE t(id TEXT COLLATE RTRIM PRIMARY KEY, x) WITHOUT ROWID", "RTRIM"),
      ("CREATE TABLE t(x)", "no primary key"), ("CREATE VIEW t AS SELECT 1 AS id", "view"),
      ("SELECT 1", "no such table"),
    ])
  func refused(sql: String, reason: String) throws {
    let replica = try ReplicaFixture()
    try replica.run(sql)
    let error = #expect(throws: ReplicaError.self) {
      try replica.file.track(["t"])
    }
    #expect(error?.description.contains(reason) == true)
  }

  @Test("a missing key, a large value or a large transaction fails with an error and as a whole")
  func limits() throws {
    let replica = try ReplicaFixture.withTasks()
    let refused: [(String, String)] = [
      ("INSERT INTO tasks(title) VALUES ('no key')", "text and not NULL"),
      ("INSERT INTO tasks(id) VALUES ('a' || char(0))", "without U+0000"),
      ("INSERT INTO tasks VALUES ('a', zeroblob(1048577), 0)", "1,048,577 bytes"),
      ("INSERT INTO tasks VALUES ('a', CAST(zeroblob(1000000) AS TEXT), 0)", "bytes as JSON"),
      (
        """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 50000)
        INSERT INTO tasks(id) SELECT 'r' || i FROM n
        """, "smaller transactions"
      ),
    ]
    for (sql, reason) in refused {
      let error = #expect(throws: DatabaseError.self) { try replica.run(sql) }
      #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
    }
    #expect(try replica.rows("SELECT count(*) FROM tasks") == [[0]])
    #expect(try replica.pending.isEmpty)
  }

  @Test("operation times never go back, even if the wall clock does, or after a restart")
  func clockBackwards() throws {
    let replica = try ReplicaFixture.withTasks()
    try replica.run("INSERT INTO tasks(id) VALUES ('a')")
    replica.clock.now -= 86_400_000
    try replica.run("INSERT INTO tasks(id) VALUES ('b')")
    try replica.reopen()
    replica.clock.now -= 86_400_000
    try replica.run("INSERT INTO tasks(id) VALUES ('c')")
    let other = try replica.other()
    _ = try other.write { try $0.execute("INSERT INTO tasks(id) VALUES ('d')") }
    let pending = try replica.pending
    #expect(pending.map(\.key.record) == ["a", "b", "c", "d"])
    #expect(zip(pending, pending.dropFirst()).allSatisfy { $0.time < $1.time && $0.id < $1.id })
  }

  @Test("children deleted by a foreign key are recorded with their parent")
  func cascades() throws {
    let replica = try ReplicaFixture()
    try replica.run(
      """
      CREATE TABLE parent(id TEXT PRIMARY KEY);
      CREATE TABLE child(id TEXT PRIMARY KEY, parent TEXT REFERENCES parent(id) ON DELETE CASCADE)
      """)
    try replica.file.track(["parent", "child"])
    try replica.run("INSERT INTO parent VALUES ('p'); INSERT INTO child VALUES ('c', 'p')")
    try replica.run("DELETE FROM parent")
    let told = try replica.pending.map { "\($0.kind) \($0.key.record)" }
    #expect(told == ["insert p", "insert c", "delete c", "delete p"])
  }

  @Test("the count of changed rows covers exactly the user's statements")
  func changedRows() throws {
    let replica = try ReplicaFixture.withTasks()
    #expect(try replica.run("INSERT INTO tasks(id) VALUES ('a'), ('b'); DELETE FROM tasks") == 4)
    #expect(try replica.run("CREATE TABLE other(id TEXT PRIMARY KEY)") == 0)
    #expect(try replica.run("SELECT * FROM tasks") == 0)
  }

  @Test("a statement cannot end the transaction around it")
  func transactionControl() throws {
    let replica = try ReplicaFixture.withTasks()
    #expect(throws: DatabaseError.self) {
      try replica.run("INSERT INTO tasks(id) VALUES ('a'); ROLLBACK")
    }
    #expect(try replica.pending.isEmpty)
  }
}
