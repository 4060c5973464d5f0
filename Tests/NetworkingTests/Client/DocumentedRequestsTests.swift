import FerryNetworking
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@Suite("The documents' example of requests", .hangLimit)
struct DocumentedRequestsTests {
  @Test("the example of requests equals the compiled one")
  func sameLines() throws {
    let page = try Project.text("Documentation/library.md")
    let blocks = page.matches(of: /```swift\nimport Ferry\n(?<code>(?s:.*?))```/)
    let shown = try #require(blocks.first { $0.code.contains("NetworkClient(") }).code
      .replacing("\"https://api.example.org/v1\"", with: "main")
      .replacing("\"https://media.example.org\"", with: "media")
      .replacing("\"photo.jpg\"", with: "file").replacing("\"film.mp4\"", with: "target")
    let example = try Project.text("Tests/NetworkingTests/Client/DocumentedRequests.swift")
    let body = try #require(
      example.firstMatch(of: /async throws\s*\{\n(?<code>(?s:.*))\n\}/)
    ).code
    #expect(joined(shown) == joined(body))
  }

  @Test("the example of requests runs")
  func runs() async throws {
    let seen = Mutex<[String]>([])
    let server = RawServer { exchange in
      let language = exchange.headers["accept-language"] ?? "-"
      seen.withLock { $0.append("\(exchange.method) \(exchange.path) \(language)") }
      return exchange.answer("200 OK", [], Array("film".utf8))
    }
    defer { server.stop() }
    let directory = try TemporaryDirectory()
    let (photo, film) = (directory.file("photo.jpg"), directory.file("film.mp4"))
    try Data([1, 2, 3]).write(to: photo)
    try await documentedRequests(
      main: BaseURL(server.url("/v1")), media: BaseURL(server.url("")), photo: photo.path,
      to: film.path)
    #expect(
      seen.withLock { $0 } == [
        "GET /v1/tasks?page=2 de", "PUT /v1/photos/7 de", "GET /films/7 de",
      ])
    #expect(try Data(contentsOf: film) == Data("film".utf8))
  }

  /// Returns the code without white space, as formatting may change it.
  private func joined(_ code: some StringProtocol) -> String {
    String(code.filter { !$0.isWhitespace })
  }
}
