import Ferry
import FerryTestSupport
import Foundation
import Testing

@Suite(
  "The documents' example of downloads", .hangLimit, .enabled(if: NginxFileServer.isAvailable))
struct DocumentedDownloadsTests {
  @Test("the example of downloads equals the compiled one, and runs")
  func documented() async throws {
    let page = try Project.text("Documentation/library.md")
    let blocks = page.matches(of: /```swift\nimport Ferry\n(?<code>(?s:.*?))```/)
    let shown = try #require(blocks.first { $0.code.contains("DownloadQueue.open") }).code
      .replacing("\"https://example.org/index.json\"", with: "url")
      .replacing("\"https://example.org/film.mp4\"", with: "url")
      .replacing("\"downloads.db\"", with: "\"\\(folder)/downloads.db\"")
      .replacing("to: \"", with: "to: \"\\(folder)/")
    let example = try Project.text("Tests/PairTests/DocumentedDownloads.swift")
    let body = try #require(
      example.firstMatch(of: /func documentedDownloads.*\{\n(?<code>(?s:.*))\n\}/)
    ).code
    #expect(shown.filter { !$0.isWhitespace } == body.filter { !$0.isWhitespace })
    let server = try await NginxFileServer(rate: 0)
    let content = [UInt8](repeating: 7, count: 100_000)
    try server.replace(content, modified: 1_000_000_000)
    let folder = try TemporaryDirectory()
    try await documentedDownloads(url: server.url, folder: folder.url.path)
    for name in ["index.json", "film.mp4"] {
      #expect(try Array(Data(contentsOf: folder.file(name))) == content)
    }
  }
}
