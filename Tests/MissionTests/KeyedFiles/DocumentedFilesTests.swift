import FerryMissions
import FerryTestSupport
import Foundation
import Testing

@Suite("The documents' example of a file store", .hangLimit)
struct DocumentedFilesTests {
  @Test("the example of files equals the compiled one")
  func sameLines() throws {
    let page = try Project.text("Documentation/files.md")
    let shown = try #require(
      page.firstMatch(of: /```swift\nimport Ferry\n\n(?<code>(?s:.*?))```/)
    ).code
    let example = try Project.text("Tests/MissionTests/KeyedFiles/DocumentedFiles.swift")
    #expect(example.hasSuffix(shown))
  }

  @Test("the example of files runs")
  func runs() async throws {
    let directory = try TemporaryDirectory(prefix: "ferry-files")
    let folder = directory.file("store").path
    try await example(folder: folder)
    let files = try await FileStore.open(folder)
    #expect(try await files.read("https://example.org/film.mp4") == Array("a film".utf8))
  }
}
