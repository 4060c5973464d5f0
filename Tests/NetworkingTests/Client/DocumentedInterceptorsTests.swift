import FerryNetworking
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@Suite("The documents' example of tokens and forms", .hangLimit)
struct DocumentedInterceptorsTests {
  @Test("the example of tokens and forms equals the compiled one")
  func sameLines() throws {
    let page = try Project.text("Documentation/library.md")
    let blocks = page.matches(of: /```swift\nimport Ferry\n(?<code>(?s:.*?))```/)
    let shown = try #require(blocks.first { $0.code.contains("MultipartForm(") }).code
      .replacing("\"https://api.example.org/v1\"", with: "main")
      .replacing("\"photo.jpg\"", with: "photo").replacing("\"film.mp4\"", with: "film")
    let example = try Project.text("Tests/NetworkingTests/Client/DocumentedInterceptors.swift")
    let body = try #require(
      example.firstMatch(of: /async throws\s*\{\n(?<code>(?s:.*))\n\}/)
    ).code
    #expect(shown.filter { !$0.isWhitespace } == body.filter { !$0.isWhitespace })
  }

  @Test("the example of tokens and forms runs")
  func runs() async throws {
    let seen = Mutex<[String]>([])
    let server = RawServer { exchange in
      let token = exchange.headers["authorization"] ?? "-"
      seen.withLock { $0.append("\(exchange.method) \(exchange.path) \(token)") }
      if token != "Bearer new" { return exchange.answer("401 Unauthorized") }
      return exchange.answer("201 Created", ["Content-Type: application/json"], Array("{}".utf8))
    }
    defer { server.stop() }
    let directory = try TemporaryDirectory()
    for name in ["a", "b"] { try Data([1]).write(to: directory.file(name)) }
    try await documentedInterceptors(
      main: BaseURL(server.url("/v1")), photo: directory.file("a").path,
      film: directory.file("b").path, storedToken: { "old" },
      newToken: { rejected in rejected == "old" ? "new" : nil })
    #expect(
      seen.withLock { $0 } == [
        "POST /v1/albums?app=album Bearer old", "POST /v1/albums?app=album Bearer new",
      ])
  }
}
