import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerryNetworking

@Suite("The log of requests", .hangLimit)
struct RequestLogTests {
  private let records = Records()

  private func client(
    _ base: BaseURL, _ transport: any Transport = CurlTransport(),
    cache: (any ResponseCache)? = nil
  ) -> NetworkClient {
    var configuration = NetworkConfiguration(base)
    configuration.retry = RetryPolicy(delayBase: .zero, delayMax: .zero, attemptsMax: 2)
    configuration.log = { [records] in records.add($0) }
    return NetworkClient(
      configuration, transport: transport, connectivity: AssumedConnectivity(), cache: cache)
  }

  @Test(
    "an address in the log has no secrets",
    arguments: [
      ("http://ada:pw@host:80/a/b?token=s&page=2#part", "http://host:80/a/b?token=*&page=*"),
      ("https://host?x", "https://host?*"), ("https://[::1]:8080", "https://[::1]:8080"),
      ("http://host/@x:y?a=b=c", "http://host/@x:y?a=*"), ("nonsense?secret", ""),
      ("http://host/?\u{301}a=\u{301}b&&", "http://host/?\u{301}a=*"),
    ])
  func redaction(url: String, text: String) { #expect(RedactedAddress.text(url) == text) }

  @Test("each request leaves one record: responses, rejections, uploads, streams and downloads")
  func kinds() async throws {
    let server = RawServer { exchange in
      exchange.path.hasPrefix("/no")
        ? exchange.answer("404 Not Found", [], Array("gone".utf8))
        : exchange.answer("200 OK", [], Array("content".utf8))
    }
    defer { server.stop() }
    let directory = try TemporaryDirectory()
    let file = directory.file("a")
    try Data([1, 2, 3]).write(to: file)
    let client = client(BaseURL(server.url(""), headers: ["Authorization": "Bearer secret"]))
    _ = try await client.send(NetworkRequest("/a", query: [QueryItem("q", "secret")]))
    _ = try? await client.send(NetworkRequest("/no"))
    _ = try await client.send(NetworkRequest("/u", method: .put, body: .file(file.path)))
    for try await _ in try await client.stream(NetworkRequest("/s")).body {}
    try await client.download(NetworkRequest("/d"), to: directory.file("b").path)
    _ = try? await client.send(NetworkRequest("/..", query: [QueryItem("q", "secret")]))
    let all = records.all
    #expect(
      all.map { "\($0.method.rawValue) \($0.address.dropFirst(server.url("").count))" } == [
        "GET /a?q=*", "GET /no", "PUT /u", "GET /s", "GET /d", "GET ",
      ])
    #expect(
      all.map(\.outcome) == [
        .network(status: 200), .failed(reason: "rejected", status: 404), .network(status: 200),
        .network(status: 200), .network(status: 200), .failed(reason: "badAddress", status: nil),
      ])
    #expect(all.map(\.bytesReceived) == [7, 4, 7, 7, 7, 0])
    #expect(all.map(\.bytesSent) == [0, 0, 3, 0, 0, 0])
    #expect(all.map(\.attempts) == [1, 1, 1, 1, 1, 0])
    #expect(!all.contains { "\($0)".contains("secret") })
  }

  @Test("a record has the origin of a cached response, and the attempts of a repeated request")
  func origins() async throws {
    struct Stored: ResponseCache {
      let isStale: Bool
      func lookup(_ request: CacheableRequest) async -> CacheAnswer {
        let response = NetworkResponse(
          status: 200, body: [1], origin: .cache(age: .seconds(5), isStale: isStale))
        return isStale ? .stale(response, validators: [:]) : .fresh(response)
      }
      func store(
        _ response: NetworkResponse, for request: CacheableRequest
      ) async -> NetworkResponse { response }
    }
    let rule = CacheRule.use(CacheOptions(staleWhenOffline: true))
    let offline = ScriptedTransport(.error(.offline))
    for isStale in [false, true] {
      _ = try await client("http://host", offline, cache: Stored(isStale: isStale)).send(
        NetworkRequest("/a", cache: rule))
    }
    _ = try await client("http://host", ScriptedTransport(.answer(503), .answer(200))).send(
      NetworkRequest("/b"))
    _ = try? await client("http://host", ScriptedTransport(.error(.interrupted))).send(
      NetworkRequest("/c", method: .post))
    #expect(
      records.all.map(\.outcome) == [
        .cache(status: 200, age: .seconds(5)), .stale(status: 200, age: .seconds(5)),
        .network(status: 200), .failed(reason: "interrupted", status: nil),
      ])
    #expect(records.all.map(\.attempts) == [0, 1, 2, 1])
  }

  @Test("a stream that its reader leaves is recorded once, as cancelled")
  func leftStream() async throws {
    let transport = ScriptedTransport(.answer(200, [:], "content"))
    do {
      let stream = try await client("http://host", transport).stream(NetworkRequest("/s"))
      #expect(records.all.isEmpty)
      stream.body.cancel()
    }
    #expect(records.all.map(\.outcome) == [.failed(reason: "cancelled", status: nil)])
  }

  @Test("a record is one line of text")
  func text() {
    let record = RequestRecord(
      method: .get, address: "http://host/a", outcome: .network(status: 200),
      duration: .milliseconds(1034), attempts: 1, bytesSent: 0, bytesReceived: 512)
    #expect("\(record)" == "GET http://host/a network 200 1.034 s 1 attempt ↑0 ↓512")
  }
}

/// The records of a log.
private final class Records: Sendable {
  private let state = Mutex<[RequestRecord]>([])

  var all: [RequestRecord] { state.withLock { $0 } }

  func add(_ record: RequestRecord) { state.withLock { $0.append(record) } }
}
