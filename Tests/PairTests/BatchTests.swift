import Ferry
import FerryTestSupport
import Testing

/// Batch operations between devices, on the command line and in the library.
@Suite(.hangLimit)
struct BatchTests {
  private static let tasks =
    "CREATE TABLE tasks(id TEXT PRIMARY KEY, due TEXT, done INTEGER, note TEXT)"

  private func pair(_ kind: StoreKind = .embedded) async throws -> Pair {
    try await .make(kind, schema: Self.tasks, tracking: ["tasks"])
  }

  @Test("a parent with 50,000 children is deleted as the error of the plain delete advises")
  func manyChildren() async throws {
    let schema = """
      CREATE TABLE lists(id TEXT PRIMARY KEY);
      CREATE TABLE tasks(id TEXT PRIMARY KEY, list TEXT REFERENCES lists(id) ON DELETE CASCADE);
      CREATE INDEX tasks_of_list ON tasks(list)
      """
    let pair = try await Pair.make(schema: schema, tracking: ["lists", "tasks"])
    try await pair.one.write("INSERT INTO lists VALUES ('a'), ('b')")
    for part in 0..<2 {
      try await pair.one.write(
        """
        WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 25000)
        INSERT INTO tasks SELECT '\(part)-' || n, 'a' FROM number
        """)
    }
    try await pair.one.write("INSERT INTO tasks VALUES ('other', 'b')")
    for device in [pair.one, pair.two] { try await device.exchange() }
    let failed = try await pair.one.ferry("sql", "DELETE FROM lists WHERE id = 'a'", exits: 1)
    #expect(failed.error.contains("ferry batch --delete --where PREDICATE tasks"))
    try await pair.one.ferry("batch", "--delete", "--where", "list = 'a'", "tasks")
    try await pair.one.ferry("sql", "DELETE FROM lists WHERE id = 'a'")
    for device in [pair.one, pair.two] { try await device.exchange() }
    try await pair.one.exchange()
    for device in [pair.one, pair.two] {
      #expect(try await device.rows("SELECT * FROM lists") == [["b"]])
      #expect(try await device.rows("SELECT * FROM tasks") == [["other", "b"]])
      #expect(try await device.ferry("verify").output.contains("equal"))
    }
  }

  private static let all = "SELECT id, due, done, note FROM tasks ORDER BY id"

  @Test(
    "a batch changes records that its author has never seen, and all devices agree",
    arguments: StoreKind.allCases)
  func neverSeen(_ kind: StoreKind) async throws {
    let pair = try await pair(kind)
    try await pair.one.write(
      "INSERT INTO tasks VALUES ('a', '2026-01-01', 0, 'x'), ('b', '2026-12-01', 0, 'y')")
    try await pair.one.exchange()
    try await pair.two.write("INSERT INTO tasks VALUES ('c', '2026-02-01', 0, 'z')")
    let answer = try await pair.two.ferry(
      "batch", "tasks", "--where", "due < '2026-10-01' and done = 0", "--set", "done=1", "--json")
    #expect(try JSONLine.all(answer.output).first?.number("changedHere") == 1)
    #expect(try await pair.two.value("SELECT done FROM tasks WHERE id = 'c'") == 1)
    #expect(try await pair.two.status().pending == 2)
    // Three operations, and one entry for each of the two records changed by the batch.
    try await expectSettled(
      [pair.two, pair.one], pair.server, operations: 6, tables: ["tasks"])
    #expect(
      try await pair.one.rows(Self.all) == [
        ["a", "2026-01-01", 1, "x"], ["b", "2026-12-01", 0, "y"], ["c", "2026-02-01", 1, "z"],
      ])
  }

  @Test(
    "if the server decides otherwise, the device corrects the rows that its batch changed",
    arguments: StoreKind.allCases)
  func corrected(_ kind: StoreKind) async throws {
    let pair = try await pair(kind)
    try await pair.one.write(
      "INSERT INTO tasks VALUES ('a', '2026-01-01', 0, 'x'), ('b', '2026-01-01', 0, 'y')")
    for device in [pair.one, pair.two] { try await device.exchange() }
    // One postpones a; two has not received this, and finishes and deletes due tasks.
    try await pair.one.write("UPDATE tasks SET due = '2027-01-01' WHERE id = 'a'")
    try await pair.one.exchange()
    try await pair.two.ferry(
      "batch", "tasks", "--where", "due < '2026-10-01'", "--set", "done=1", "--set", "note=null")
    #expect(try await pair.two.rows("SELECT done FROM tasks") == [[1], [1]])
    try await expectSettled(
      [pair.two, pair.one], pair.server, operations: 5, tables: ["tasks"])
    #expect(
      try await pair.two.rows(Self.all) == [
        ["a", "2027-01-01", 0, "x"], ["b", "2026-01-01", 1, .null],
      ])
    try await pair.one.write("UPDATE tasks SET due = '2027-01-01' WHERE id = 'b'")
    try await pair.one.exchange()
    try await pair.two.ferry("batch", "tasks", "--where", "due < '2026-10-01'", "--delete")
    #expect(try await pair.two.rows("SELECT id FROM tasks") == [["a"]])
    try await expectSettled(
      [pair.two, pair.one], pair.server, operations: 7, tables: ["tasks"])
    #expect(try await pair.two.count("tasks") == 2)
  }

  /// A rule of the space, and a value that no batch may set by it.
  private static let rules = [
    (#"{"tables":{"tasks":{"columns":{"note":{"required":true}}}}}"#, "note=null"),
    (#"{"tables":{"tasks":{"unique":[["note"]]}}}"#, "note='x'"),
  ]

  @Test(
    "a refused batch has no effect on its author's rows, also after a retry", arguments: Self.rules)
  func refused(_ rule: String, _ assignment: String) async throws {
    let pair = try await pair()
    try await pair.one.write("INSERT INTO tasks VALUES ('a', '1', 0, 'x'), ('b', '1', 0, 'y')")
    for device in [pair.one, pair.two] { try await device.exchange() }
    try await Device.joined(pair.server.url).open().applySchema(try SpaceSchema(json: rule))
    try await pair.one.ferry("batch", "tasks", "--where", "done = 0", "--set", assignment)
    try await pair.one.write("INSERT INTO tasks VALUES ('c', '2', 1, 'z')")
    #expect(try await pair.one.exchange(exits: 4).quarantined == 1)
    try await pair.two.exchange()
    let expected: [[Value]] = [["a", "1", 0, "x"], ["b", "1", 0, "y"], ["c", "2", 1, "z"]]
    for device in [pair.one, pair.two] { #expect(try await device.rows(Self.all) == expected) }
    let verified = try await pair.one.ferry("verify")
    #expect(!verified.output.contains("skipped") && !verified.error.contains("skipped"))
    let named = try await pair.one.ferry("sync", exits: 4)
    #expect(named.error.contains("entry 1: table tasks, batch set where done = 0: "))
    #expect(
      try await pair.one.ferry("quarantine", "list").output.contains("set where done = 0"))
    let retried = try await pair.one.ferry("quarantine", "retry", "1")
    #expect(
      retried.output.contains("the next sync sends it: table tasks, batch set where done = 0"))
    try await pair.one.exchange(exits: 4)
    #expect(try await pair.one.rows(Self.all) == expected)
    let none = try await pair.one.ferry("retry")
    #expect(none.output.contains("no change of an upload-only table has failed"))
  }

  @Test("a batch takes effect once, even if its answers are lost")
  func lostAnswers() async throws {
    let pair = try await pair()
    try await pair.one.write("INSERT INTO tasks VALUES ('a', '1', 0, ''), ('b', '1', 0, '')")
    try await pair.one.exchange()
    try await pair.one.ferry("batch", "tasks", "--where", "true", "--set", "done=1")
    pair.proxy.trap(.answer, of: "POST ", times: .max, .cut)
    try await pair.one.ferry("push", exits: 3)
    pair.proxy.removeTraps()
    try await expectSettled(
      [pair.one, pair.two], pair.server, operations: 5, tables: ["tasks"])
    #expect(try await pair.two.rows("SELECT done FROM tasks") == [[1], [1]])
  }

  @Test("edits before and after a batch keep their order on all devices")
  func order() async throws {
    let pair = try await pair()
    let replica = try await pair.one.open()
    try await replica.write { database in
      try database.execute("INSERT INTO tasks VALUES ('a', '1', 0, ''), ('b', '2', 0, '')")
      try database.batch("tasks", where: "due = '1'", set: ["done": 5])
      try database.execute("UPDATE tasks SET done = 6 WHERE id = 'b'")
      try database.batchDelete("tasks", where: "done = 5")
      try database.execute("INSERT INTO tasks VALUES ('a', '3', 7, 'again')")
    }
    try await expectSettled(
      [pair.one, pair.two], pair.server, operations: 8, tables: ["tasks"])
    #expect(
      try await pair.two.rows(Self.all) == [["a", "3", 7, "again"], ["b", "2", 6, ""]])
  }

  @Test("the command reports faults in a batch, and lists the batch while it is pending")
  func command() async throws {
    let pair = try await pair()
    for (arguments, code) in [
      (["--where", "due <", "--set", "done=1"], Int32(1)),
      (["--where", "dew < 1", "--set", "done=1"], 1), (["--where", "true"], 2),
      (["--where", "true", "--delete", "--set", "done=1"], 2),
      (["--where", "true", "--set", "done"], 2),
      (["--where", "true", "--set", "done=1", "--set", "done=2"], 2), (["--set", "done=1"], 2),
    ] {
      let finished = try await ChildProcess.run(
        try Executables.ferry(), ["--replica", pair.one.path, "batch", "tasks"] + arguments)
      #expect(finished.status == .exited(code), "\(arguments): \(finished.error)")
      #expect(finished.error.contains("next: "), "\(arguments)")
    }
    try await pair.one.write("INSERT INTO tasks VALUES ('a', '1', 0, '')")
    try await pair.one.ferry(
      "batch", "tasks", "--where", "due = '1'", "--set", "note='007'", "--set", "done=-1")
    #expect(try await pair.one.rows("SELECT done, note FROM tasks") == [[-1, "007"]])
    #expect(
      try await pair.one.ferry("pending").output.contains("set where due = '1'"))
  }
}
