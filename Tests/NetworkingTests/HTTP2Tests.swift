import FerryNetworking
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@Suite(
  "HTTP/2 over TLS", .hangLimit,
  .enabled(if: NginxServer.isAvailable, "needs nginx and the openssl command"))
struct HTTP2Tests {
  private static let content = (0..<8 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

  private func transport(
    trusting server: NginxServer, bandwidth: BandwidthLimits = BandwidthLimits()
  ) -> CurlTransport {
    var configuration = TransportConfiguration()
    configuration.certificateAuthorities = server.certificate
    configuration.bandwidth = bandwidth
    return CurlTransport(configuration: configuration)
  }

  @Test("HTTP/2 is used if the server offers it, over one connection for many requests at once")
  func multiplexing() async throws {
    let server = try await NginxServer(files: ["a": [1]])
    let transport = transport(trusting: server)
    let answers = try await withThrowingTaskGroup { group in
      for _ in 0..<50 {
        group.addTask { try await transport.send(TransportRequest(.get, server.url("/a"))) }
      }
      return try await group.reduce(into: [TransportResponse]()) { $0.append($1) }
    }
    #expect(Set(answers.map { $0.headers["Protocol"] }) == ["HTTP/2.0"])
    #expect(Set(answers.map { $0.headers["Connection-Number"] }).count == 1)
    #expect(answers.allSatisfy { $0.status == 200 && $0.body == [1] })
  }

  @Test("a server without a trusted certificate is refused")
  func untrusted() async throws {
    let server = try await NginxServer()
    await #expect {
      _ = try await CurlTransport().send(TransportRequest(.get, server.url("/")))
    } throws: {
      ($0 as? TransportError)?.kind == .secureConnectionFailed
    }
  }

  @Test("redirects in a loop end")
  func redirects() async throws {
    let server = try await NginxServer()
    await #expect {
      _ = try await transport(trusting: server).send(
        TransportRequest(.get, server.url("/loop")))
    } throws: {
      ($0 as? TransportError)?.kind == .other
    }
  }

  @Test("files are sent and received whole, with progress")
  func files() async throws {
    let server = try await NginxServer()
    let directory = try TemporaryDirectory()
    let (up, down) = (directory.file("up").path, directory.file("down").path)
    try Data(Self.content).write(to: URL(filePath: up))
    let client = NetworkClient(
      NetworkConfiguration(BaseURL(server.url(""))), transport: transport(trusting: server))
    let sent = Mutex(TransportProgress())
    let answer = try await client.send(
      NetworkRequest("/copy", method: .put, body: .file(up))
    ) { progress in sent.withLock { $0 = progress } }
    #expect(answer.status == 201 && answer.headers["Protocol"] == "HTTP/2.0")
    #expect(server.file("copy") == Self.content)
    #expect(sent.withLock { $0.sent } == Self.content.count)
    #expect(sent.withLock { $0.sentTotal } == Self.content.count)
    let received = Mutex(TransportProgress())
    try await client.download(NetworkRequest("/copy"), to: down) { progress in
      received.withLock { $0 = progress }
    }
    #expect(FileManager.default.contents(atPath: down).map(Array.init) == Self.content)
    #expect(received.withLock { $0.receivedTotal } == Self.content.count)
  }

  @Test("a bandwidth limit holds in both directions, over shared connections")
  func bandwidth() async throws {
    let content = Array(Self.content.prefix(1 << 20))
    let server = try await NginxServer(files: ["a": content])
    let limits = BandwidthLimits(receiving: 4 << 20, sending: 4 << 20)
    let transport = transport(trusting: server, bandwidth: limits)
    let elapsed = try await ContinuousClock().measure {
      try await withThrowingTaskGroup { group in
        for index in 0..<3 {
          group.addTask {
            let down = try await transport.send(TransportRequest(.get, server.url("/a")))
            #expect(down.body == content)
            let up = try await transport.send(
              TransportRequest(.put, server.url("/\(index)"), body: content))
            #expect(up.status == 201)
          }
        }
        try await group.waitForAll()
      }
    }
    // 3 MiB down at 4 MiB a second at least, whatever goes up meanwhile.
    #expect(elapsed >= .milliseconds(750 - 100 - 10))
    for index in 0..<3 { #expect(server.file("\(index)") == content) }
  }

  @Test("a stream that is not read does not delay the others")
  func slowConsumer() async throws {
    // More than a connection's window and all buffers between: some of it has to wait.
    let large = [UInt8](repeating: 7, count: 64 << 20)
    let server = try await NginxServer(files: ["large": large, "small": [1]])
    let transport = transport(trusting: server)
    let stream = try await transport.stream(TransportRequest(.get, server.url("/large")))
    var parts = stream.body.makeAsyncIterator()
    var count = try await parts.next()?.count ?? 0
    for _ in 1...5 {
      let small = try await transport.send(TransportRequest(.get, server.url("/small")))
      #expect(small.body == [1])
      #expect(small.headers["Connection-Number"] == stream.headers["Connection-Number"])
    }
    while let part = try await parts.next() { count += part.count }
    #expect(count == large.count)
  }

  @Test("a server's request for a later attempt is followed")
  func retryAfter() async throws {
    let server = try await NginxServer()
    let still = StillSurroundings()
    let client = NetworkClient(
      NetworkConfiguration(BaseURL(server.url(""))), transport: transport(trusting: server),
      surroundings: still.surroundings)
    await #expect {
      _ = try await client.send(NetworkRequest("/busy", retry: RetryPolicy(attemptsMax: 3)))
    } throws: {
      ($0 as? NetworkError)?.kind == .rejected(status: 503, reason: "HTTP 503")
    }
    // Nothing but jitter: half of the first ceiling.
    #expect(still.pauses == [.milliseconds(250), .milliseconds(250)])
  }
}
