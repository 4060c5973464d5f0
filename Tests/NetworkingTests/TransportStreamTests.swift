import FerryNetworking
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@Suite("Streams of the transport", .hangLimit)
struct TransportStreamTests {
  private static let chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nA: b\r\n\r\n"

  @Test(
    "a stream delivers the head before the body, each part when it arrives, and the end",
    arguments: TransportUnderTest.allCases)
  func parts(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let gate = DispatchSemaphore(value: 0)
    let server = RawServer { exchange in
      exchange.send(Self.chunkedHead)
      for index in 1...3 {
        gate.wait()
        exchange.chunk("part \(index)")
      }
      gate.wait()
      return exchange.send("0\r\n\r\n")
    }
    defer { server.stop() }
    let stream = try await transport.stream(TransportRequest(.get, server.url("/")).patient)
    #expect(stream.status == 200)
    #expect(stream.headers["a"] == "b")
    var parts = stream.body.makeAsyncIterator()
    for index in 1...3 {
      gate.signal()
      #expect(try await parts.next() == Array("part \(index)".utf8))
    }
    gate.signal()
    #expect(try await parts.next() == nil)
    #expect(try await parts.next() == nil)
  }

  @Test(
    "a stream that the server breaks off fails once, after the received parts",
    arguments: TransportUnderTest.allCases)
  func brokenOff(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { exchange in
      exchange.send(Self.chunkedHead)
      exchange.chunk("all there is")
      return false
    }
    defer { server.stop() }
    let stream = try await transport.stream(TransportRequest(.get, server.url("/")).patient)
    var parts = stream.body.makeAsyncIterator()
    #expect(try await parts.next() == Array("all there is".utf8))
    await #expect { _ = try await parts.next() } throws: {
      ($0 as? TransportError)?.kind == .interrupted
    }
    #expect(try await parts.next() == nil)
  }

  @Test("a refused stream has no answer", arguments: TransportUnderTest.allCases)
  func refused(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let url = "http://127.0.0.1:\(try FreePort.refused())/"
    await #expect { _ = try await transport.stream(TransportRequest(.get, url)) } throws: {
      ($0 as? TransportError)?.kind == .offline
    }
  }

  @Test(
    "a stream fails if its body is too slow, even if it never pauses",
    arguments: TransportUnderTest.pausing)
  func tooSlow(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { exchange in
      exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
      while exchange.chunk("x") {}
      return false
    }
    defer { server.stop() }
    var request = TransportRequest(.get, server.url("/"))
    request.timeout = .milliseconds(200)
    // No machine sends so much, so the test's own pace does not decide what is slow.
    request.minimumRate = 1 << 50
    var stream: TransportStream?
    while stream == nil {
      do {
        stream = try await transport.stream(request)
      } catch {
        // A busy machine may need more time to connect.
        request.timeout *= 2
      }
    }
    let body = try #require(stream).body
    await #expect {
      for try await _ in body {}
    } throws: {
      ($0 as? TransportError)?.kind == .timedOut
    }
  }

  @Test("a stream follows redirects without their bodies", arguments: TransportUnderTest.allCases)
  func redirect(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { exchange in
      exchange.path == "/"
        ? exchange.answer("302 Found", ["Location: /there"], Array("not this".utf8))
        : exchange.answer("404 Not Found", [], Array("this".utf8))
    }
    defer { server.stop() }
    let stream = try await transport.stream(TransportRequest(.get, server.url("/")).patient)
    #expect(stream.status == 404)
    var body: [UInt8] = []
    for try await part in stream.body { body += part }
    #expect(body == Array("this".utf8))
  }

  enum Leaving: CaseIterable {
    case breakLoop, cancelTask, cancelBody, dropStream
  }

  @Test(
    "a stream ends with its connection when the consumer leaves",
    arguments: TransportUnderTest.allCases, Leaving.allCases)
  func leaving(_ kind: TransportUnderTest, way: Leaving) async throws {
    let transport = kind.make()
    let server = RawServer { exchange in
      exchange.send(Self.chunkedHead)
      exchange.chunk("first")
      exchange.waitForLeave()
      return false
    }
    defer { server.stop() }
    let request = TransportRequest(.get, server.url("/x"), timeout: .seconds(36_000))
    let arrived = AsyncStream<Void>.makeStream()
    let task = Task { [transport] in
      let stream = try await transport.stream(request)
      if way == .dropStream { return }
      for try await part in stream.body {
        #expect(part == Array("first".utf8))
        arrived.continuation.finish()
        if way == .breakLoop { break }
        if way == .cancelBody { stream.body.cancel() }
      }
      if way == .breakLoop { await server.happened(.ended("/x")) }
    }
    if way == .cancelTask {
      for await _ in arrived.stream {}
      task.cancel()
    }
    let failsAsCancelled = way == .cancelTask || way == .cancelBody
    switch await task.result {
    case .success: #expect(!failsAsCancelled)
    case .failure(let error):
      #expect(failsAsCancelled && (error as? TransportError)?.kind == .cancelled)
    }
    await server.happened(.ended("/x"))
  }

  @Test("a stream survives its transport", arguments: TransportUnderTest.allCases)
  func outlives(_ kind: TransportUnderTest) async throws {
    let gate = DispatchSemaphore(value: 0)
    let server = RawServer { exchange in
      exchange.send(Self.chunkedHead)
      gate.wait()
      exchange.chunk("late")
      return exchange.send("0\r\n\r\n")
    }
    defer { server.stop() }
    var transport: (any Transport)? = kind.make()
    let stream = try #require(
      try await transport?.stream(TransportRequest(.get, server.url("/")).patient))
    transport = nil
    gate.signal()
    var body: [UInt8] = []
    for try await part in stream.body { body += part }
    #expect(body == Array("late".utf8))
  }

  @Test(
    "a stream keeps to the consumer's pace, and waiting for the consumer is not silence",
    arguments: TransportUnderTest.pausing)
  func pace(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let size = 64 << 20
    let sent = Mutex(0)
    let server = RawServer { exchange in
      if exchange.path == "/silent" {
        exchange.send(Self.chunkedHead)
        exchange.waitForLeave()
        return false
      }
      exchange.send("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n")
      let part = [UInt8](repeating: 7, count: 64 << 10)
      for _ in 0..<(size / part.count) where exchange.send(part) {
        sent.withLock { $0 += part.count }
      }
      return true
    }
    defer { server.stop() }
    let timeout = Duration.seconds(10)
    let slow = try await transport.stream(
      TransportRequest(.get, server.url("/slow"), timeout: timeout))
    let silent = try await transport.stream(
      TransportRequest(.get, server.url("/silent"), timeout: timeout))
    await #expect { for try await _ in silent.body {} } throws: {
      ($0 as? TransportError)?.kind == .timedOut
    }
    #expect(sent.withLock { $0 } < 32 << 20)
    var received = 0
    for try await part in slow.body { received += part.count }
    #expect(received == size)
  }

  @Test("a stream carries server-sent events", arguments: TransportUnderTest.allCases)
  func events(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { exchange in
      exchange.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
      exchange.send(": hello\n\nid: 1\nevent: head\ndata: {\"head")
      exchange.send("\":1}\n\nid: 2\nevent: head\ndata: {\"head\":2}\n\n")
      return false
    }
    defer { server.stop() }
    let stream = try await transport.stream(TransportRequest(.get, server.url("/events")).patient)
    var parser = ServerSentEventParser()
    var events: [ServerSentEvent] = []
    for try await part in stream.body { events += try parser.feed(part) }
    #expect(events.map(\.data) == ["{\"head\":1}", "{\"head\":2}"])
    #expect(parser.lastEventID == "2")
  }
}
