import FerryHTTPServer
import FerryNetworking
import FerryTestSupport
import Foundation
import Testing

@Suite("The documents' example of data", .hangLimit)
struct DocumentedDataTests {
  @Test("the example of data equals the compiled one")
  func sameLines() throws {
    let page = try Project.text("Documentation/library.md")
    let blocks = page.matches(of: /```swift\nimport Ferry\n(?<code>(?s:.*?))```/)
    let shown = try #require(blocks.first { $0.code.contains("DataManager(") }).code
      .replacing("\"https://api.example.org/v1\"", with: "main")
      .replacing("\"https://media.example.org/logo.png\"", with: "image")
      .replacing("\"caches\"", with: "folder")
    let example = try Project.text("Tests/NetworkingTests/Caching/DocumentedData.swift")
    let body = try #require(
      example.firstMatch(of: /func documentedData.*\{\n(?<code>(?s:.*))\n\}/)
    ).code
    #expect(shown.filter { !$0.isWhitespace } == body.filter { !$0.isWhitespace })
  }

  @Test("the example of data runs, and asks the server once")
  func runs() async throws {
    let (folder, hits) = (Folder(), Hits())
    let server = try HTTPServer(configuration: HTTPServer.Configuration().patient) { request in
      _ = hits.note("\(request.method) \(request.path)")
      let type = request.path == "/logo.png" ? "image/png" : "application/json"
      return HTTPResponse(
        status: 200, headers: ["Content-Type": type, "Cache-Control": "max-age=3600"],
        body: .bytes([1]))
    }
    for _ in 1...2 {
      try await documentedData(
        main: BaseURL("http://127.0.0.1:\(server.port)/v1"),
        image: "http://127.0.0.1:\(server.port)/logo.png", folder: folder.path)
    }
    await server.stop(grace: .zero)
    #expect(hits.seen == ["GET /v1/shops", "GET /logo.png"])
  }
}
