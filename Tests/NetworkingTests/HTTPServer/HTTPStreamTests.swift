import FerryTestSupport
import Synchronization
import Testing

@testable import FerryHTTPServer

@Suite("Live bodies", .hangLimit)
struct HTTPStreamTests {
  /// Serves each request with a new stream and passes the stream to the test.
  func withStreams(
    _ configuration: HTTPServer.Configuration = .init(),
    _ body: (HTTPServer, Collector<HTTPStream>) async throws -> Void
  ) async throws {
    let streams = Collector<HTTPStream>()
    let handler: HTTPHandler = { _ in
      let stream = HTTPStream()
      streams.add(stream)
      return HTTPResponse(
        status: 200, headers: ["Content-Type": "text/event-stream"], body: .stream(stream))
    }
    try await withServer(configuration, handler: handler) { try await body($0, streams) }
  }

  /// Connects a listener whose response headers have arrived.
  func listener(_ server: HTTPServer) async throws -> Listener {
    try await onThread {
      let client = try RawClient(port: server.port)
      try client.send(RawClient.message("GET", "/events"))
      let head = try client.head()
      #expect(head.status == 200)
      #expect(head.headers["transfer-encoding"] == "chunked")
      return Listener(client: client)
    }
  }

  /// A client, used by one thread at a time.
  final class Listener: @unchecked Sendable {
    // SAFETY: each test awaits one call before it makes the next.
    private var client: RawClient?

    init(client: RawClient) { self.client = client }

    func chunk() async throws -> String? {
      try await onThread { [self] in
        try client?.chunk().map { String(decoding: $0, as: UTF8.self) }
      }
    }

    func leave() { client = nil }
  }

  @Test("several listeners each receive every message when it is sent")
  func delivery() async throws {
    try await withStreams { server, streams in
      var listeners: [Listener] = []
      for _ in 0..<5 { listeners.append(try await listener(server)) }
      for round in 0..<20 {
        for stream in await streams.values(5) { #expect(stream.send(Array("event \(round)".utf8))) }
        for listener in listeners { #expect(try await listener.chunk() == "event \(round)") }
      }
      for stream in await streams.values(5) { stream.finish() }
      for listener in listeners { #expect(try await listener.chunk() == nil) }
    }
  }

  @Test("bytes sent before the response and before finish arrive, and the connection is kept")
  func early() async throws {
    let handler: HTTPHandler = { _ in
      let stream = HTTPStream()
      stream.send(Array("hello ".utf8))
      stream.send(Array("world".utf8))
      stream.finish()
      #expect(!stream.send([1]))
      return HTTPResponse(status: 200, body: .stream(stream))
    }
    try await withServer(handler: handler) { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        #expect(try client.exchange("GET", "/").text == "hello world")
        #expect(try client.exchange("GET", "/").text == "hello world")
      }
    }
  }

  @Test("a disconnected peer is noticed at the next send, and reported once")
  func closedByPeer() async throws {
    try await withStreams { server, streams in
      let listener = try await listener(server)
      let stream = try #require(await streams.values(1).first)
      let closings = Collector<Int>()
      stream.onClose { closings.add(1) }
      stream.send(Array(": heartbeat\n\n".utf8))
      #expect(try await listener.chunk() == ": heartbeat\n\n")
      listener.leave()
      try await beat(stream)
      _ = await closings.values(1)
      #expect(stream.isClosed)
      #expect(!stream.send([1]))
      #expect(closings.count == 1)
      stream.onClose { closings.add(2) }
      #expect(await closings.values(2) == [1, 2])
    }
  }

  @Test("a reader that is too slow is disconnected, and others are not")
  func slowReader() async throws {
    try await withStreams { server, streams in
      let slow = try await listener(server)
      let stream = try #require(await streams.values(1).first)
      let closed = Collector<Int>()
      stream.onClose { closed.add(1) }
      let other = try await listener(server)
      let piece = [UInt8](repeating: 0, count: 16 << 10)
      // The kernel's own buffers take some megabytes first.
      var sent = 0
      try await eventually("the stream to give up its reader") {
        guard stream.send(piece) else { return true }
        sent += piece.count
        try #require(sent < 1 << 30)
        return false
      }
      #expect(stream.isClosed)
      _ = await closed.values(1)
      let fast = try #require(await streams.values(2).last)
      #expect(fast.send(Array("still here".utf8)))
      #expect(try await other.chunk() == "still here")
      slow.leave()
    }
  }

  @Test("a steady reader receives any number of bytes in order")
  func throughput() async throws {
    try await withStreams { server, streams in
      let listener = try await listener(server)
      let stream = try #require(await streams.values(1).first)
      let writer = Task {
        for index in 0..<2000 {
          let piece = Array("\(index) ".utf8) + [UInt8](repeating: 46, count: 4000)
          try await eventually("the reader") { stream.pendingBytes <= 16 << 10 }
          #expect(stream.send(piece))
        }
        stream.finish()
      }
      var text = ""
      while let chunk = try await listener.chunk() { text += chunk }
      try await writer.value
      let numbers = text.split(separator: ".").map { $0.filter(\.isNumber) }.filter { !$0.isEmpty }
      #expect(numbers == (0..<2000).map { "\($0)" })
    }
  }

  @Test("a stopping server ends its streams with a complete body")
  func closedByServer() async throws {
    let streams = Collector<HTTPStream>()
    let handler: HTTPHandler = { _ in
      let stream = HTTPStream()
      streams.add(stream)
      return HTTPResponse(status: 200, body: .stream(stream))
    }
    let server = try HTTPServer(configuration: .init().patient, handler: handler)
    let listener = try await listener(server)
    let stream = try #require(await streams.values(1).first)
    let closed = Collector<Int>()
    stream.onClose { closed.add(1) }
    stream.send(Array("last words".utf8))
    await server.stop(grace: .seconds(5))
    #expect(await closed.values(1) == [1])
    #expect(!stream.send([1]))
    #expect(try await listener.chunk() == "last words")
    #expect(try await listener.chunk() == nil)
  }

  @Test("HEAD of a live body ends it at once")
  func head() async throws {
    try await withStreams { server, streams in
      let response = try await onThread { try RawClient(port: server.port).exchange("HEAD", "/") }
      #expect(response.status == 200)
      let closed = Collector<Int>()
      await streams.values(1).first?.onClose { closed.add(1) }
      _ = await closed.values(1)
    }
  }

  @Test("five hundred idle listeners receive the next event, and leave nothing behind")
  func manyListeners() async throws {
    FileDescriptorLimit.raise()
    try await withStreams(.init(connectionLimit: 600)) { server, streams in
      var listeners: [Listener] = []
      for _ in 0..<500 { listeners.append(try await listener(server)) }
      let closed = Collector<Int>()
      for stream in await streams.values(500) {
        stream.onClose { closed.add(1) }
        #expect(stream.send(Array("moved".utf8)))
      }
      for listener in listeners { #expect(try await listener.chunk() == "moved") }
      for listener in listeners { listener.leave() }
      for stream in await streams.values(500) { try await beat(stream) }
      #expect(await closed.values(500).count == 500)
    }
  }

  /// Sends heartbeats until the peer's leaving is noticed: the kernel may report it only after the
  /// first.
  private func beat(_ stream: HTTPStream) async throws {
    try await eventually("the stream to be closed") {
      // Few enough for the reader not to count as too slow.
      if !stream.isClosed, stream.pendingBytes == 0 { stream.send(Array(":\n".utf8)) }
      return stream.isClosed
    }
  }
}
