import FerryTestSupport
import Testing

@testable import FerryNetworking

@Suite("Accepted media types", .hangLimit)
struct AcceptedTypesTests {
  @Test(
    "a range has the types that it names, whatever their case and parameters",
    arguments: [
      ("application/json", "application/json", true),
      ("application/json", "Application/JSON; charset=utf-8", true),
      ("application/json", "application/problem+json", false),
      ("application/json", "text/html", false), ("image/*", "image/png", true),
      ("image/*;q=0.5", "image/png", true), ("image/*", "images/png", false),
      ("*/*", "anything/at-all", true), ("*/*", "nonsense", false), ("text/html", "", false),
    ])
  func ranges(range: String, type: String, contains: Bool) throws {
    #expect(try #require(MediaRange(range)).contains(type) == contains)
  }

  @Test(
    "a text that is no range is none",
    arguments: ["", "json", "a/", "/b", "*/json", "a/b, c/d", "a /b", "a/b\r\nX: y", "ä/b"])
  func noRanges(text: String) { #expect(MediaRange(text) == nil) }

  @Test(
    "a successful response with content needs an accepted type",
    arguments: [
      (200, "application/json", "{}", true), (200, "text/html", "<p>", false),
      (200, "", "bytes", false), (204, "", "", true), (200, "text/html", "", true),
      (404, "text/html", "<p>", true),
    ])
  func responses(status: Int, type: String, body: String, isAccepted: Bool) {
    let accepts = AcceptedTypes(ranges: ["application/json", "application/problem+json"])
    let headers: TransportHeaders = type.isEmpty ? [:] : ["Content-Type": type]
    let response = NetworkResponse(status: status, headers: headers, body: Array(body.utf8))
    do throws(NetworkError) {
      try accepts.check(response, hasBody: true)
      #expect(isAccepted)
    } catch {
      #expect(!isAccepted)
      #expect(error.kind == .unacceptable(contentType: type.isEmpty ? nil : type))
      #expect(error.response == response && !error.isTransient)
    }
  }

  @Test("a client sends the types, and rejects others by a typed error, for streams by the head")
  func overTheWire() async throws {
    let server = RawServer { exchange in
      exchange.answer(
        "200 OK", ["Content-Type: text/html", "Asked: \(exchange.headers["accept"] ?? "-")"],
        Array("<p>login</p>".utf8))
    }
    defer { server.stop() }
    var configuration = NetworkConfiguration(BaseURL(server.url("")))
    configuration.accepts = ["application/json", "text/csv;q=0.5"]
    let client = NetworkClient(configuration)
    let error = await #expect(throws: NetworkError.self) {
      try await client.send(NetworkRequest("/a"))
    }
    #expect(error?.kind == .unacceptable(contentType: "text/html"))
    #expect(error?.response?.headers["Asked"] == "application/json, text/csv;q=0.5")
    let streamed = await #expect(throws: NetworkError.self) {
      try await client.stream(NetworkRequest("/a"))
    }
    #expect(streamed?.kind == .unacceptable(contentType: "text/html"))
    let own = try await client.send(NetworkRequest("/a", accepts: ["text/*"]))
    #expect(own.headers["Asked"] == "text/*")
  }
}
