import FerryHTTPServer
import FerryNetworking
import FerryTestSupport
import Foundation
import Testing

@Suite("The documents' example of values", .hangLimit)
struct DocumentedValuesTests {
  @Test("the example of values equals the compiled one")
  func sameLines() throws {
    let page = try Project.text("Documentation/library.md")
    let blocks = page.matches(of: /```swift\nimport Ferry\n(?<code>(?s:.*?))```/)
    let shown = try #require(blocks.first { $0.code.contains("envelope:") }).code
      .replacing("\"https://api.example.org/v1\"", with: "main")
      .replacing("\"caches\"", with: "folder")
    let example = try Project.text("Tests/NetworkingTests/Caching/DocumentedValues.swift")
    let parts = try #require(
      example.firstMatch(
        of:
          /(?<types>struct User(?s:.*?))\/\/\/(?s:.*?)func documentedValues.*\{\n(?<code>(?s:.*))\n\}/
      ))
    #expect(
      shown.filter { !$0.isWhitespace }
        == (parts.types + parts.code).filter { !$0.isWhitespace })
  }

  @Test("the example of values runs, and asks the server once for each answer")
  func runs() async throws {
    let (folder, hits) = (Folder(), Hits())
    let server = try HTTPServer(configuration: HTTPServer.Configuration().patient) { request in
      _ = hits.note("\(request.method) \(request.path)")
      let data = request.path == "/v1/me" ? #"{"name":"Ada"}"# : #"[{"title":"Books"}]"#
      return HTTPResponse(
        status: 200, headers: ["Content-Type": "application/json", "Cache-Control": "max-age=60"],
        body: .bytes(Array(#"{"code":0,"data":\#(data)}"#.utf8)))
    }
    try await documentedValues(
      main: BaseURL("http://127.0.0.1:\(server.port)/v1"), folder: folder.path)
    await server.stop(grace: .zero)
    #expect(hits.seen == ["GET /v1/me", "GET /v1/shops"])
  }
}
