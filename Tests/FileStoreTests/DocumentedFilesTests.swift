import FerryFiles
import FerryTestSupport
import Foundation
import Testing

@Suite("The documents' example of a file store", .hangLimit)
struct DocumentedFilesTests {
  @Test("the example of files equals the compiled one")
  func sameLines() throws {
    let here = URL(filePath: #filePath).deletingLastPathComponent()
    let page = try String(
      contentsOf: here.appending(path: "../../Documentation/files.md").standardized,
      encoding: .utf8)
    let shown = try #require(
      page.firstMatch(of: /```swift\nimport Ferry\n\n(?<code>(?s:.*?))```/)
    ).code
    let example = try String(
      contentsOf: here.appending(path: "DocumentedFiles.swift"), encoding: .utf8)
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
