import Ferry
import FerryTestSupport
import Foundation
import Testing

/// Conflicts and their answers by the bridge of a shell, with a real server and another device.
@Suite("Conflicts of a shell's page", .hangLimit)
struct ShellConflictTests {
  /// Two devices write the same cards: a title asks, and a lane goes to the later write.
  private func contested() async throws -> ShellStage {
    let stage = try await ShellStage()
    try await stage.other.ferry("name", "Ada's tablet")
    try await stage.replica.applySchema(
      try SpaceSchema(json: #"{"tables":{"cards":{"columns":{"title":"ask"}}}}"#))
    try await write(stage, "insert", ["a", "b", "c"], "new", lane: "todo")
    _ = try await stage.page.call("data.sync")
    try await stage.other.exchange()
    try await stage.other.write("UPDATE cards SET title = 'theirs ' || id, lane = 'done'")
    try await stage.other.exchange()
    try await write(stage, "update", ["a", "b", "c"], "mine", lane: "doing")
    _ = try await stage.page.call("data.sync")
    #expect(try await stage.page.object("data.status").number("questions") == 3)
    return stage
  }

  private func write(
    _ stage: ShellStage, _ action: String, _ ids: [String], _ title: String, lane: String
  ) async throws {
    let changes = ids.map { id -> [String: Any] in
      [
        "table": "cards", "action": action,
        "values": ["id": id, "title": "\(title) \(id)", "lane": lane],
      ]
    }
    _ = try await stage.page.call("data.write", ["changes": changes])
  }

  private func open(_ page: BridgePage) async throws -> [JSONLine] {
    try await page.list("data.conflicts", ["openOnly": true]).sorted {
      $0.text("record") ?? "" < $1.text("record") ?? ""
    }
  }

  @Test("a page sees both sides of each question, and decided conflicts only if it asks for them")
  func lists() async throws {
    let stage = try await contested()
    let questions = try await open(stage.page)
    #expect(questions.map { $0.text("record") } == ["a", "b", "c"])
    for question in questions {
      let record = try #require(question.text("record"))
      #expect(question.text("table") == "cards" && question.text("column") == "title")
      #expect(question.text("lost") == "mine \(record)")
      #expect(question.text("present") == "theirs \(record)")
      #expect(question.members["isOpen"] as? Bool == true)
      #expect(question.members["resolvedAt"] is NSNull)
      #expect(question.object("loser").members["isOwn"] as? Bool == true)
      #expect(question.object("winner").members["isOwn"] as? Bool == false)
      #expect(question.object("winner").text("name") == "Ada's tablet")
    }
    let decided = try await stage.page.list("data.conflicts", ["openOnly": false]).filter {
      $0.members["isOpen"] as? Bool == false
    }
    #expect(decided.map { $0.text("column") } == ["lane", "lane", "lane"])
    #expect(decided.allSatisfy { $0.text("lost") == "done" && $0.text("present") == "doing" })
    #expect(try await stage.page.list("data.conflicts", ["limit": 2]).count == 2)
    #expect(try await stage.page.object("data.status").number("questions") == 3)
    // A page without the table learns nothing of the table's conflicts, and answers none.
    let number = try #require(questions.first?.number("conflict"))
    try await stage.withPage(of: ["others"]) { (page: BridgePage) async throws in
      let seen = try await page.list("data.conflicts", [String: Any]())
      #expect(seen.isEmpty)
      let code = try await page.code("data.resolve", ["conflict": number, "keep": "local"])
      #expect(code == "no_table")
    }
    #expect(try await open(stage.page).count == 3)
    await stage.end()
  }

  @Test("a page keeps its value or the other's, or sets another one, and all devices follow")
  func answers() async throws {
    let stage = try await contested()
    let page = stage.page
    let numbers = try await open(page).compactMap { $0.number("conflict") }
    try #require(numbers.count == 3)
    for wrong in [
      ["conflict": numbers[0]], ["conflict": numbers[0], "keep": "both"],
      ["conflict": numbers[0], "keep": "local", "set": ["title": "x"]],
      ["conflict": numbers[0], "set": [String: Any]()], ["conflict": 0, "keep": "local"],
    ] as [[String: Any]] {
      #expect(try await page.code("data.resolve", wrong) == "invalid_argument", "\(wrong)")
    }
    #expect(try await page.code("data.resolve", ["conflict": 999, "keep": "local"]) == "not_found")
    #expect(try await open(page).count == 3)
    for (number, answer) in zip(
      numbers,
      [["keep": "local"], ["keep": "remote"], ["set": ["title": "both", "lane": "done"]]]
        as [[String: Any]])
    {
      let result = try await page.call(
        "data.resolve", answer.merging(["conflict": number]) { $1 })
      #expect(result is NSNull)
    }
    #expect(try await open(page).isEmpty)
    let resolved = try await page.list("data.conflicts", ["openOnly": false]).filter {
      $0.text("column") == "title"
    }
    #expect(resolved.count == 3 && resolved.allSatisfy { $0.number("resolvedAt") ?? 0 > 0 })
    #expect(try await page.object("data.status").number("questions") == 0)
    _ = try await page.call("data.sync")
    try await stage.other.exchange()
    let titles = "SELECT title, lane FROM cards ORDER BY id"
    #expect(
      try await stage.other.rows(titles) == [
        ["mine a", "doing"], ["theirs b", "doing"], ["both", "done"],
      ])
    let shown = try await page.list("data.query", ["table": "cards", "order": ["id"]])
    #expect(shown.map { $0.text("title") } == ["mine a", "theirs b", "both"])
    #expect(try await stage.other.open().conflicts(openOnly: true).isEmpty)
    await stage.end()
  }

  @Test("a later write of the device that won leaves the question of the page open")
  func elsewhere() async throws {
    let stage = try await contested()
    try await stage.other.exchange()
    try await stage.other.write("UPDATE cards SET title = 'theirs too' WHERE id = 'a'")
    try await stage.other.exchange()
    _ = try await stage.page.call("data.sync")
    // The page's user does not know the losing value.
    let open = try await open(stage.page)
    #expect(open.map { $0.text("record") } == ["a", "b", "c"])
    #expect(open.first?.text("lost") == "mine a" && open.first?.text("present") == "theirs too")
    let shown = try await stage.page.list("data.query", ["table": "cards", "order": ["id"]])
    #expect(shown.first?.text("title") == "theirs too")
    await stage.end()
  }
}
