import FerryTestSupport
import Foundation
import Testing

@Suite("The documents' example of a migrator", .hangLimit)
struct DocumentedMigrationTests {
  @Test("the example of a migrator equals the compiled one")
  func sameLines() throws {
    let page = try Project.text("Documentation/migrations.md")
    let shown = try #require(
      page.firstMatch(of: /```swift\nimport Ferry\n(?<code>(?s:.*?))```/)
    ).code.replacing("\"notes.db\"", with: "file")
    let example = try Project.text("Tests/PairTests/DocumentedMigration.swift")
    let body = try #require(
      example.firstMatch(of: /func documentedMigration.*?\{\n(?<code>(?s:.*))\n\}/)
    ).code
    #expect(shown.filter { !$0.isWhitespace } == body.filter { !$0.isWhitespace })
  }

  @Test("the example of a migrator runs without a server, twice")
  func runs() async throws {
    let device = try Device()
    try await documentedMigration(file: device.path)
    try await documentedMigration(file: device.path)
    try await device.write("INSERT INTO notes VALUES ('a', 'one', 1)")
    let operation = try #require(try await device.open().operations.pending().first).operation
    #expect(operation.columns.map(\.name).sorted() == ["body", "n"])
  }
}
