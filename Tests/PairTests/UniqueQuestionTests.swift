import Ferry
import FerryTestSupport
import Testing

/// Two records with one unique value, in tables without a rule of the space for this.
@Suite(.hangLimit)
struct UniqueQuestionTests {
  private static let sql = """
    CREATE TABLE tasks(id TEXT PRIMARY KEY, code TEXT UNIQUE, note TEXT NOT NULL);
    CREATE TABLE plain(id TEXT PRIMARY KEY)
    """

  /// Returns two devices, each of which has one of two records and waits with the other one.
  private func pair() async throws -> Pair {
    let pair = try await Pair.make(schema: Self.sql, tracking: ["tasks", "plain"])
    try await pair.one.write("INSERT INTO tasks VALUES ('t1', 'c', 'one')")
    try await pair.two.write(
      "INSERT INTO plain VALUES ('p'); INSERT INTO tasks VALUES ('t2', 'c', 'two')")
    _ = try await pair.one.exchange()
    try await pair.two.exchange(exits: 4)
    try await pair.one.exchange(exits: 4)
    return pair
  }

  private func open(_ device: Device) async throws -> KeptConflict {
    try #require(try await device.open().conflicts(openOnly: true).first)
  }

  @Test("both users see the record, the column and the other record, and the rest is applied")
  func listed() async throws {
    let pair = try await pair()
    for (device, waiting, holder) in [(pair.one, "t2", "t1"), (pair.two, "t1", "t2")] {
      let listed = try JSONLine.all(try await device.ferry("conflicts", "--open", "--json").output)
      let question = try #require(listed.first)
      #expect(listed.count == 1 && question.text("record") == waiting)
      #expect(question.text("column") == "code" && question.text("lost") == "c")
      #expect(question.text("holder") == holder)
      #expect(try await device.ferry("conflicts").output.contains("record \(holder)"))
      #expect(try await device.status().questions == 1)
    }
    #expect(try await pair.one.count("plain") == 1)
  }

  @Test(
    "users with integer keys are asked, and the answer releases the rows that refer to the record")
  func mapped() async throws {
    let pair = try await Pair.make(
      schema: """
        CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT UNIQUE);
        CREATE TABLE item(id INTEGER PRIMARY KEY, tag INTEGER REFERENCES tag(id), note TEXT)
        """, tracking: ["tag", "item"])
    for (device, note) in [(pair.one, "one"), (pair.two, "two")] {
      try await device.write(
        "INSERT INTO tag(name) VALUES ('red'); INSERT INTO item(tag, note) VALUES (1, '\(note)')")
    }
    _ = try await pair.one.exchange()
    try await pair.two.exchange(exits: 4)
    try await pair.one.exchange(exits: 4)
    let question = try await open(pair.one)
    #expect(question.key.table == "tag" && question.holder != nil)
    #expect(question.conflict.column == "name" && question.conflict.lost == "red")
    #expect(try await open(pair.two).holder == question.key.record)
    try await pair.one.ferry("resolve", "\(question.number)", "--set", "name=crimson")
    for device in [pair.one, pair.two, pair.one] { try await device.exchange() }
    for device in [pair.one, pair.two] {
      #expect(
        try await device.rows(
          "SELECT note, name FROM item JOIN tag ON tag.id = item.tag ORDER BY note")
          == [["one", "red"], ["two", "crimson"]])
      #expect(try await device.status().questions == 0)
      #expect(try await device.status().deferred == 0)
    }
  }

  @Test("another value for the waiting record gives all devices both records")
  func set() async throws {
    let pair = try await pair()
    let question = try await open(pair.one)
    let refused = try await pair.one.ferry(
      "resolve", "\(question.number)", "--keep", "remote", exits: 1)
    #expect(refused.error.contains("choose another one for t2"))
    let taken = try await pair.one.ferry(
      "resolve", "\(question.number)", "--set", "code=c", exits: 1)
    #expect(taken.error.contains("UNIQUE"))
    try await pair.one.ferry("resolve", "\(question.number)", "--set", "code=c9")
    for device in [pair.one, pair.two, pair.one] { try await device.exchange() }
    for device in [pair.one, pair.two] {
      #expect(
        try await device.rows("SELECT * FROM tasks ORDER BY id")
          == [["t1", "c", "one"], ["t2", "c9", "two"]])
      #expect(try await device.status().questions == 0)
      #expect(try await device.status().deferred == 0)
      // No write has won, so none is named.
      for command in ["conflicts", "log"] {
        let listed = try await device.ferry(command)
        #expect(!listed.output.contains("1970"), "\(listed.output)")
      }
    }
    #expect(try await pair.two.ferry("conflicts").output.contains("another record"))
    #expect(try await pair.two.ferry("log").output.contains("waited for a value of another record"))
  }

  @Test("a record that waits by the user's answer ends no sync, and a comparison names it")
  func keepLocal() async throws {
    let pair = try await pair()
    let waiting = try await pair.one.ferry("verify", exits: 4)
    #expect(waiting.output.contains("not compared: 1 record that waits here"))
    #expect(waiting.output.contains("1 record: UNIQUE constraint failed: tasks.code"))
    for device in [pair.one, pair.two] {
      try await device.ferry("resolve", "\(try await open(device).number)", "--keep", "local")
      try await device.exchange()
      #expect(try await device.status().deferred == 1)
      #expect(try await device.status().keptLocal == 1)
      let verified = try await device.ferry("verify")
      #expect(verified.output.contains("equal as far as compared"))
    }
    try await pair.one.write("UPDATE tasks SET code = 'other' WHERE id = 't1'")
    for device in [pair.one, pair.two] { try await device.exchange() }
    #expect(try await pair.one.count("tasks") == 2)
    #expect(try await pair.one.status().keptLocal == 0)
  }

  @Test("a change of the row that has the value ends the question", arguments: [true, false])
  func changed(_ isDelete: Bool) async throws {
    let pair = try await pair()
    try await pair.one.write(
      isDelete ? "DELETE FROM tasks" : "UPDATE tasks SET code = 'c1' WHERE id = 't1'")
    for device in [pair.one, pair.two, pair.one] { try await device.exchange() }
    let rows = try await pair.one.rows("SELECT * FROM tasks ORDER BY id")
    #expect(rows == (isDelete ? [] : [["t1", "c1", "one"]]) + [["t2", "c", "two"]])
    #expect(try await pair.two.rows("SELECT * FROM tasks ORDER BY id") == rows)
    for device in [pair.one, pair.two] { #expect(try await device.status().questions == 0) }
  }
}
