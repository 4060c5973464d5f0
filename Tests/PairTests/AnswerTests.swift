import Ferry
import FerryTestSupport
import Testing

/// Answers to conflicts between real devices: all devices have the chosen side, and questions end.
@Suite(.hangLimit)
struct AnswerTests {
  private static let columns = "(id TEXT PRIMARY KEY, v TEXT NOT NULL, w TEXT NOT NULL, u TEXT)"
  private static let tables = ["plain", "asked", "boxes"]
  private static let schema = """
    {"tables":{"asked":{"deletes":"ask"},"boxes":{"columns":{"v":"ask"}}}}
    """

  private func pair() async throws -> Pair {
    let sql = Self.tables.map { "CREATE TABLE \($0)\(Self.columns);" }.joined()
    let pair = try await Pair.make(schema: sql, tracking: Self.tables)
    try await pair.one.open().applySchema(try SpaceSchema(json: Self.schema))
    for device in [pair.one, pair.two] { try await device.exchange() }
    for table in Self.tables {
      try await pair.one.write("INSERT INTO \(table) VALUES ('x', 'old', 'kept', 'u')")
    }
    for device in [pair.one, pair.two] { try await device.exchange() }
    return pair
  }

  private func rows(_ device: Device, _ table: String) async throws -> [[Value]] {
    try await device.rows("SELECT * FROM \(table)")
  }

  @Test(
    "an edit that lost against a delete is listed, comes back with its whole row, and can be undone",
    arguments: [("plain", true), ("plain", false), ("asked", true)])
  func comesBack(_ table: String, isDeleteFirst: Bool) async throws {
    let pair = try await pair()
    let (one, two) = (pair.one, pair.two)
    if !isDeleteFirst { try await two.write("UPDATE \(table) SET v = 'typed'") }
    if !isDeleteFirst { try await two.exchange() }
    try await one.write("DELETE FROM \(table)")
    try await one.exchange()
    if isDeleteFirst { try await two.write("UPDATE \(table) SET v = 'typed'") }
    try await two.exchange(exits: table == "asked" ? 4 : 0)
    #expect(try await rows(two, table).isEmpty)
    let listed = try JSONLine.all(try await two.ferry("conflicts", "--json").output)
    let value = try #require(listed.first { $0.text("column") == "v" })
    #expect(value.text("lost") == "typed")
    let question = listed.first { $0.text("state") == "open" } ?? value
    let number = try #require(question.number("id"))
    let answer = try await two.ferry("resolve", "\(number)", "--keep", "local")
    #expect(answer.output.contains("the next sync sends"))
    for device in [two, one] { try await device.exchange() }
    for device in [one, two] {
      #expect(try await rows(device, table) == [["x", "typed", "kept", "u"]])
      #expect(try await device.status().questions == 0)
    }
    let own = try #require(try await two.open().operations.recorded(limit: 1).first)
    try await two.ferry("undo", "\(own.operation.id)")
    for device in [two, one] { try await device.exchange() }
    for device in [one, two] { #expect(try await rows(device, table).isEmpty) }
  }

  @Test("another value brings a record back with its whole row, too")
  func set() async throws {
    let pair = try await pair()
    try await pair.one.write("DELETE FROM plain")
    try await pair.one.exchange()
    try await pair.two.write("UPDATE plain SET v = 'typed'")
    try await pair.two.exchange()
    let kept = try #require(try await pair.two.open().conflicts().first)
    try await pair.two.ferry("resolve", "\(kept.number)", "--set", "u=chosen")
    for device in [pair.two, pair.one] { try await device.exchange() }
    for device in [pair.one, pair.two] {
      #expect(try await rows(device, "plain") == [["x", "typed", "kept", "chosen"]])
    }
  }

  /// Lets two lose in a column about which it is asked.
  private func ask(_ pair: Pair) async throws {
    try await pair.one.write("UPDATE boxes SET v = 'one'")
    try await pair.two.write("UPDATE boxes SET v = 'two'")
    try await pair.one.exchange()
    try await pair.two.exchange(exits: 4)
    #expect(try await pair.two.status().questions == 1)
  }

  @Test(
    "a later delete or write by the user who was asked ends the question at once",
    arguments: ["DELETE FROM boxes", "UPDATE boxes SET v = 'later'"])
  func ownWrite(_ statement: String) async throws {
    let pair = try await pair()
    try await ask(pair)
    try await pair.two.write(statement)
    #expect(try await pair.two.status().questions == 0)
    for device in [pair.two, pair.one, pair.two] { try await device.exchange() }
    #expect(try await pair.two.open().conflicts(openOnly: true).isEmpty)
    let rows = try await rows(pair.two, "boxes")
    #expect(try await self.rows(pair.one, "boxes") == rows)
    #expect(rows.isEmpty == statement.hasPrefix("DELETE"))
  }

  @Test(
    "a later write by the winner leaves the question open, and the answer still has the lost value")
  func laterWrite() async throws {
    let pair = try await pair()
    try await ask(pair)
    try await pair.one.write("UPDATE boxes SET v = 'once more'")
    try await pair.one.exchange()
    try await pair.two.exchange(exits: 4)
    let question = try #require(try await pair.two.open().conflicts(openOnly: true).first)
    try await pair.two.ferry("resolve", "\(question.number)", "--keep", "local")
    for device in [pair.two, pair.one] { try await device.exchange() }
    for device in [pair.one, pair.two] {
      #expect(try await rows(device, "boxes") == [["x", "two", "kept", "u"]])
    }
  }

  @Test("an edit and a delete before the sync leave no question")
  func editAndDelete() async throws {
    let pair = try await pair()
    try await pair.one.write("UPDATE boxes SET v = 'one'")
    try await pair.two.write("UPDATE boxes SET v = 'two'")
    try await pair.two.write("DELETE FROM boxes")
    for device in [pair.one, pair.two, pair.one, pair.two] { try await device.exchange() }
    for device in [pair.one, pair.two] { #expect(try await device.status().questions == 0) }
  }

  @Test("a question about a column ends with its record, which the winner's side leaves deleted")
  func deletedElsewhere() async throws {
    let pair = try await pair()
    try await ask(pair)
    let number = try #require(try await pair.two.open().conflicts(openOnly: true).first?.number)
    try await pair.one.exchange()
    try await pair.one.write("DELETE FROM boxes")
    for device in [pair.one, pair.two] { try await device.exchange() }
    #expect(try await pair.two.status().questions == 0)
    let answer = try await pair.two.ferry("resolve", "\(number)", "--keep", "remote")
    #expect(answer.output.contains("nothing changes"))
    for device in [pair.two, pair.one] { try await device.exchange() }
    for device in [pair.one, pair.two] { #expect(try await rows(device, "boxes").isEmpty) }
    // The user may still choose the own value.
    try await pair.two.ferry("resolve", "\(number)", "--keep", "local")
    for device in [pair.two, pair.one] { try await device.exchange() }
    #expect(try await rows(pair.one, "boxes") == [["x", "two", "kept", "u"]])
  }

  @Test("an answer in a column can be undone")
  func undoAnswer() async throws {
    let pair = try await pair()
    try await ask(pair)
    let replica = try await pair.two.open()
    let question = try #require(try await replica.conflicts(openOnly: true).first)
    try await replica.resolve(question.number, .keepLocal)
    #expect(try await rows(pair.two, "boxes") == [["x", "two", "kept", "u"]])
    let answer = try #require(try await replica.operations.recorded(limit: 1).first)
    #expect(try await replica.operations.undo(answer.operation.id) == 1)
    #expect(try await rows(pair.two, "boxes") == [["x", "one", "kept", "u"]])
  }
}
