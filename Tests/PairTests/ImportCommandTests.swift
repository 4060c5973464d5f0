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

  @Test("rows come from standard input, in each format and with other separators")
  func standardInput() async throws {
    let device = try Device()
    func rows(_ table: String) async throws -> [[Value]] {
      try await device.rows("SELECT id, word, count FROM \(table) ORDER BY id")
    }
    let expected: [[Value]] = [["a", "x;y,z", 3], ["b", .null, 4]]
    let json = #"[{"id": "a", "word": "x;y,z", "count": 3}, {"id": "b", "count": 4}]"#
    try await device.ferry("import", "one", "-", input: json)
    try await device.ferry(
      "import", "two", "-", "--separator", ";", input: "id;word;count\na;\"x;y,z\";3\nb;;4\n")
    try await device.ferry(
      "import", "three", "-", "--separator", "tab", input: "id\tword\tcount\na\tx;y,z\t3\nb\t\t4\n")
    let file = device.directory.file("words.tsv")
    try Data("id\tword\tcount\r\na\tx;y,z\t3\r\nb\t\t4\r\n".utf8).write(to: file)
    try await device.ferry("import", "four", file.path)
    for table in ["one", "two", "three", "four"] {
      #expect(try await rows(table) == expected, "\(table)")
    }
  }

  @Test("a separator that cannot be one, or contradicts the format, is refused")
  func separators() async throws {
    let device = try Device()
    for separator in ["ab", "x", "7", "\"", "", "ä"] {
      let refused = try await device.ferry(
        "import", "t", "-", "--separator", separator, exits: 2, input: "id\n1\n")
      #expect(refused.error.contains("separator"), "\(separator)")
    }
    let refused = try await device.ferry(
      "import", "t", "-", "--separator", ";", "--format", "json", exits: 2, input: "[]")
    #expect(refused.error.contains("contradict each other"))
    #expect(!FileManager.default.fileExists(atPath: device.path))
  }

  @Test("rows that exist twice in the file, or in the table, are counted and named")
  func duplicates() async throws {
    let device = try Device()
    let first = try await device.ferry(
      "import", "words", "-", input: "id,n\na,1\nb,2\na,3\nc,4\na,5\n")
    #expect(first.output == "5 rows imported into words (created and tracked)\n")
    #expect(
      first.error.contains("2 rows of the file have the identifier of an earlier row (a)"))
    #expect(!first.error.contains("in the table before"))
    #expect(
      try await device.rows("SELECT id, n FROM words ORDER BY id")
        == [["a", 5], ["b", 2], ["c", 4]])
    let again = try await device.ferry(
      "import", "words", "-", "--json", input: "id,n\nd,1\nb,7\nd,2\nc,8\nc,9\n")
    let answer = try #require(try JSONLine.all(again.output).last)
    #expect(answer.number("rows") == 5 && answer.number("inserted") == 1)
    #expect(answer.number("replaced") == 2 && answer.number("repeated") == 2)
    #expect(answer.members["firstReplaced"] as? [String] == ["b", "c"])
    #expect(answer.members["firstRepeated"] as? [String] == ["d", "c"])
    let third = try await device.ferry("import", "words", "-", input: "id,n\nb,7\n")
    #expect(third.error.contains("1 row was in the table before (b)"))
    let generated = try await device.ferry(
      "import", "words", "-", "--generate-id", input: "n\n1\n1\n")
    #expect(generated.error.isEmpty)
  }

  @Test("duplicates are found across the transactions of a large import")
  func manyDuplicates() async throws {
    let device = try Device()
    let rows = (0..<2_500).map { "k\($0 % 2_400),\($0)" }.joined(separator: "\n")
    let result = try await device.ferry(
      "import", "words", "-", "--json", input: "id,n\n\(rows)\n")
    let answer = try #require(try JSONLine.all(result.output).last)
    #expect(answer.number("repeated") == 100 && answer.number("replaced") == 0)
    #expect(answer.number("inserted") == 2_400)
    #expect(
      answer.members["firstRepeated"] as? [String] == ["k0", "k1", "k2", "k3", "k4"])
    let again = try await device.ferry("import", "words", "-", input: "id,n\n\(rows)\n")
    #expect(again.error.contains("2,400 rows were in the table before (k0, k1, k2, k3, k4, …)"))
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
