import Ferry
import FerryTestSupport
import Foundation
import Testing

@Suite(
  "The documents' example of composed missions", .hangLimit,
  .enabled(if: NginxFileServer.isAvailable))
struct DocumentedOwnMissionsTests {
  @Test("the example of composed missions equals the compiled one, and runs")
  func documented() async throws {
    let page = try Project.text("Documentation/missions.md")
    let blocks = page.matches(of: /```swift\n(?<code>(?s:.*?))```/)
    let shown = try #require(blocks.first { $0.code.contains("OwnMissions.open") }).code
      .replacing("\"courses\"", with: "folder")
      .replacing("\"https://example.org/knots.mp4\"", with: "url")
      .replacing("\"https://api.example.org/lessons\"", with: "api")
    let example = try Project.text("Tests/PairTests/DocumentedOwnMissions.swift")
    let body = try #require(
      example.firstMatch(of: /func ownMissionExample.*\{\n(?<code>(?s:.*))\n\}/)
    ).code
    #expect(shown.filter { !$0.isWhitespace } == body.filter { !$0.isWhitespace })
    let server = try await NginxFileServer(rate: 0)
    try server.replace(Array("{\"lessons\":[1,2]}".utf8), modified: 1_000_000_000)
    let folder = try TemporaryDirectory()
    try await ownMissionExample(
      folder: folder.file("own").path, url: server.url, api: server.url + "?lessons=1")
    let missions = try await OwnMissions.open(folder.file("own").path)
    let lessons: [String: [Int]] = try await missions.result("lessons.json", in: "knots")
    #expect(lessons == ["lessons": [1, 2]])
    await missions.close()
  }
}
