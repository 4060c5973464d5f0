import FerryNetworking
import FerryTestSupport
import Foundation
import Testing

@Suite("The transport's failures", .hangLimit)
struct CurlFailureTests {
  private let transport = CurlTransport()

  @Test("refused and unresolvable connections are offline")
  func offline() async throws {
    let port = try FreePort.next()
    let refused = try await failure(TransportRequest(.get, "http://127.0.0.1:\(port)/"))
    #expect(refused.kind == .offline)
    #expect(refused.message == "cannot reach 127.0.0.1:\(port): Connection refused")
    #expect(refused.isTransient)
    let unknown = try await failure(TransportRequest(.get, "http://no.such.host.invalid/"))
    #expect(unknown.kind == .offline)
    #expect(unknown.message.contains("no.such.host.invalid:80"))
  }

  @Test("a server that never accepts is offline, and one that never answers has timed out")
  func timeouts() async throws {
    let server = RawServer { exchange in
      exchange.waitForLeave()
      return false
    }
    defer { server.stop() }
    let late = try await failure(
      TransportRequest(.get, server.url("/"), timeout: .seconds(2)))
    #expect(late.kind == .timedOut)
    // TLS with a server that only listens: the connection is never ready for a request.
    let unreachable = try await failure(
      TransportRequest(
        .get, "https://127.0.0.1:\(server.port)/", connectTimeout: .milliseconds(50)))
    #expect(unreachable.kind == .offline)
  }

  @Test(
    "a connection that breaks is an interruption",
    arguments: ["/length", "/chunk", "/reset", "/none"])
  func interrupted(path: String) async throws {
    let server = RawServer { exchange in
      switch exchange.path {
      case "/length": exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
      case "/chunk":
        exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        exchange.chunk("12345")
      case "/reset":
        exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
        exchange.resetOnClose()
      default: break
      }
      return false
    }
    defer { server.stop() }
    let error = try await failure(TransportRequest(.get, server.url(path)))
    #expect(error.kind == .interrupted)
    #expect(error.message.contains("127.0.0.1:\(server.port)"))
  }

  @Test(
    "a body over the limit is refused, counted after decompression",
    arguments: ["/plain", "/chunked", "/gzip", "/zstd"])
  func tooLarge(path: String) async throws {
    let server = RawServer { exchange in
      switch exchange.path {
      case "/plain": exchange.answer("200 OK", [], [UInt8](repeating: 0, count: 65_537))
      case "/gzip": exchange.answer("200 OK", ["Content-Encoding: gzip"], CannedBodies.gzipBomb)
      case "/zstd":
        exchange.answer(
          "200 OK", ["Content-Encoding: zstd"], CannedBodies.zstdBomb(blocks: 8192))
      default:
        exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
          && (0..<100_000).allSatisfy { _ in exchange.chunk(String(repeating: "x", count: 999)) }
      }
    }
    defer { server.stop() }
    let error = try await failure(
      TransportRequest(.get, server.url(path), responseLimit: 65_536))
    #expect(error.kind == .responseTooLarge)
    #expect(!error.isTransient)
  }

  @Test("a body of exactly the limit is accepted, after decompression as well")
  func atTheLimit() async throws {
    let server = RawServer {
      $0.answer("200 OK", ["Content-Encoding: zstd"], CannedBodies.zstdBomb(blocks: 2))
    }
    defer { server.stop() }
    let request = TransportRequest(.get, server.url("/"), responseLimit: 256 << 10)
    #expect(try await transport.send(request).body == [UInt8](repeating: 0, count: 256 << 10))
  }

  @Test("redirects in a loop end after five")
  func redirectLoop() async throws {
    let server = RawServer { $0.answer("302 Found", ["Location: /"]) }
    defer { server.stop() }
    #expect(try await failure(TransportRequest(.get, server.url("/"))).kind == .other)
    #expect(server.count(.requested("/")) == 6)
  }

  @Test(
    "a redirect to another scheme than http is refused",
    arguments: ["file:///etc/passwd", "ftp://127.0.0.1/"])
  func redirectScheme(location: String) async throws {
    let server = RawServer { $0.answer("302 Found", ["Location: \(location)"]) }
    defer { server.stop() }
    #expect(try await failure(TransportRequest(.get, server.url("/"))).kind == .other)
  }

  @Test(
    "an answer that is not HTTP, or cannot be decoded, is an error of its own",
    arguments: [
      "SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nnot gzip at all",
    ])
  func garbage(answer: String) async throws {
    let server = RawServer { exchange in
      exchange.send(answer)
      return false
    }
    defer { server.stop() }
    #expect(try await failure(TransportRequest(.get, server.url("/"))).kind == .other)
  }

  @Test("an invalid address is reported without an attempt")
  func badAddress() async throws {
    #expect(try await failure(TransportRequest(.get, "localhost:8080")).kind == .badAddress)
    #expect(try await failure(TransportRequest(.get, "http://a{b}/")).kind == .badAddress)
  }

  private func failure(_ request: TransportRequest) async throws -> TransportError {
    do {
      let response = try await transport.send(request)
      return try #require(nil, "answered with \(response.status)")
    } catch let error as TransportError {
      return error
    }
  }
}
