import FerryLaboratory
import FerryTestSupport
import Foundation
import Testing

@Suite("The documents' example of records", .hangLimit)
struct DocumentedRecordsTests {
  @Test("the example of records equals the compiled one")
  func sameLines() throws {
    let page = try Project.text("Documentation/library.md")
    let blocks = page.matches(
      of: /```swift\nimport Ferry\nimport Foundation\n(?<code>(?s:.*?))```/)
    let shown = try #require(blocks.first { $0.code.contains("LocalDatabase.open(") }).code
      .replacing("\"local.db\"", with: "file")
    let example = try Project.text("Tests/SyncClientTests/Persistence/DocumentedRecords.swift")
    let body = try #require(
      example.firstMatch(of: /func documentedRecords.*?\{\n(?<code>(?s:.*))\n\}/)
    ).code
    #expect(shown.filter { !$0.isWhitespace } == body.filter { !$0.isWhitespace })
  }

  @Test("the example of records runs, and leaves the rows that it describes")
  func runs() async throws {
    let folder = try TemporaryDirectory(prefix: "ferry-records")
    let file = folder.file("notes.db").path
    try await documentedRecords(file: file)
    #expect(
      try rows("SELECT id, title, done FROM notes ORDER BY id", at: file) == [
        ["n1", "Buy milk", 0], ["n2", "Buy bread", 1],
      ])
  }
}
