import FerryTestSupport
import Synchronization
import Testing

@testable import FerryHTTPServer

@Suite("Relayed content", .hangLimit)
struct RelayTests {
  private static let tag = EntityTag(strong: "abc")

  private static func request(_ method: String, range: String? = nil) -> HTTPRequest {
    var headers = HTTPHeaders()
    headers["Range"] = range
    return HTTPRequest(
      method: method, path: "/", segments: [], query: [:], headers: headers, body: [],
      bodyWireBytes: 0, remoteAddress: "127.0.0.1")
  }

  private static func plan(_ size: Int, _ method: String, range: String? = nil) -> RelayPlan {
    RelayPlan(
      of: Representation(size: size, tag: tag, mediaType: "text/plain"),
      for: request(method, range: range))
  }

  /// The most of some numbers.
  private final class Peak: Sendable {
    private let kept = Mutex(0)

    var value: Int { kept.withLock { $0 } }

    func note(_ number: Int) { kept.withLock { $0 = max($0, number) } }
  }

  @Test("a plan has the parts that a file's answer would have")
  func plans() {
    #expect(Self.plan(10, "GET").parts == [.range(0..<10)])
    let partial = Self.plan(10, "GET", range: "bytes=2-4")
    #expect(partial.status == 206 && partial.parts == [.range(2..<5)])
    #expect(partial.headers["Content-Range"] == "bytes 2-4/10")
    #expect(Self.plan(10, "HEAD").parts.isEmpty)
    #expect(Self.plan(0, "GET").parts.isEmpty)
    #expect(Self.plan(10, "GET", range: "bytes=20-").status == 416)
    let several = Self.plan(1_000, "GET", range: "bytes=0-9,500-509")
    #expect(several.status == 206 && several.parts.count == 5)
    #expect(several.parts[1] == .range(0..<10) && several.parts[3] == .range(500..<510))
  }

  @Test("content is sent with its length while it comes, and a slow reader slows its source down")
  func sends() async throws {
    let size = 24 << 20
    let most = Peak()
    let handler: HTTPHandler = { request in
      let stream = HTTPStream(capacity: 1 << 20, isEndless: false)
      let plan = RelayPlan(
        of: Representation(size: size, tag: Self.tag, mediaType: "text/plain"), for: request)
      guard !plan.parts.isEmpty else { return plan.response(stream) }
      Task {
        let piece = [UInt8](repeating: 7, count: 64 << 10)
        for _ in 0..<size / piece.count {
          guard await stream.hasRoom() else { return }
          stream.send(piece)
          most.note(stream.pendingBytes)
        }
        stream.finish()
      }
      return plan.response(stream)
    }
    try await withServer(handler: handler) { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        #expect(try client.exchange("HEAD", "/").headers["content-length"] == String(size))
        try client.send(RawClient.message("GET", "/"))
        let head = try client.head()
        #expect(head.headers["content-length"] == String(size))
        #expect(head.headers["transfer-encoding"] == nil)
        try client.skip(size)
        // The connection is kept.
        #expect(try client.exchange("HEAD", "/").status == 200)
      }
    }
    #expect(most.value <= 1 << 20)
  }

  @Test("content whose source fails ends with its connection")
  func fails() async throws {
    let handler: HTTPHandler = { _ in
      let stream = HTTPStream(isEndless: false)
      Task {
        _ = await stream.hasRoom()
        stream.send([1, 2, 3])
        stream.abort()
        #expect(await !stream.hasRoom())
      }
      return HTTPResponse(status: 200, body: .relay(stream, count: 10))
    }
    try await withServer(handler: handler) { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        #expect(throws: (any Error).self) { try client.exchange("GET", "/") }
      }
    }
  }

  @Test("a writer that waits for a reader that leaves goes on")
  func leaves() async throws {
    let ended = Collector<Bool>()
    let handler: HTTPHandler = { _ in
      let stream = HTTPStream(isEndless: false)
      Task {
        let piece = [UInt8](repeating: 7, count: 32 << 10)
        while await stream.hasRoom() { stream.send(piece) }
        ended.add(true)
      }
      return HTTPResponse(status: 200, body: .relay(stream, count: 1 << 30))
    }
    try await withServer(handler: handler) { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        try client.send(RawClient.message("GET", "/"))
        _ = try client.head()
      }
      #expect(await ended.values(1) == [true])
    }
  }
}
