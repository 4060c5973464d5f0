import Ferry
import FerryTestSupport
import Foundation
import Testing

/// `ferry import` end to end: from a file on one device to the rows of another.
@Suite(.hangLimit)
struct ImportCommandTests {
  private static let files = [
    "words.json": """
    [{"id": "a", "word": "ä 🚢", "count": 3, "big": 9007199254740993},
     {"id": "b", "word": null, "count": 4, "big": 1}]
    """,
    "words.jsonl": """
    {"id": "a", "word": "ä 🚢", "count": 3, "big": 9007199254740993}
    {"id": "b", "count": 4, "big": 1}
    """,
    "words.csv": "id,word,count,big\r\na,\"ä 🚢\",3,9007199254740993\r\nb,,4,1\r\n",
  ]

  @Test(
    "JSON, JSON lines and CSV are imported and reach another device", arguments: files.keys.sorted()
  )
  func formats(_ name: String) async throws {
    let server = try await Server.start()
    let device = try Device()
    let file = device.directory.file(name)
    let text = try #require(Self.files[name])
    try Data(text.utf8).write(to: file)
    let imported = try await device.ferry("import", "words", file.path, "--json")
    let lines = try JSONLine.all(imported.output)
    let answer = try #require(lines.last)
    #expect(answer.number("rows") == 2 && answer.members["created"] as? Bool == true)
    let again = try await device.ferry("import", "words", file.path, "--json")
    #expect(try JSONLine.all(again.output).last?.members["created"] as? Bool == false)
    #expect(try await device.status().pending == 2, "unchanged rows are no operations")
    let rows = try await device.rows("SELECT id, word, count, big FROM words ORDER BY id")
    #expect(rows.first == ["a", "ä 🚢", 3, 9_007_199_254_740_993])
    #expect(rows.last?.last == 1)

    try await device.ferry("init", "--server", server.url, "--space", "demo")
    #expect(try await device.exchange().pushed == 2)
    let other = try await Device.joined(
      server.url, schema: "CREATE TABLE words(id TEXT PRIMARY KEY, word, count, big)",
      tracking: ["words"])
    try await other.exchange()
    #expect(try await other.rows("SELECT id, word, count, big FROM words ORDER BY id") == rows)
  }

  @Test("a file with a fault is refused as a whole, with the place of the fault")
  func faults() async throws {
    let device = try Device()
    let file = device.directory.file("words.jsonl")
    try Data("{\"id\": \"a\"}\n{\"id\": 7,\n".utf8).write(to: file)
    let failed = try await device.ferry("import", "words", file.path, exits: 1)
    #expect(failed.error.contains("line 2"))
    #expect(try await device.rows("SELECT 1 FROM sqlite_schema WHERE name = 'words'").isEmpty)
    let absent = try await device.ferry("import", "words", "/nowhere.json", exits: 1)
    #expect(absent.error.contains("/nowhere.json cannot be read"))
  }
}
