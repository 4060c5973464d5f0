import FerryNetworking
import FerryTestSupport
import Foundation
import Testing

@Suite("The transport's failures", .hangLimit)
struct TransportFailureTests {

  @Test("refused and unresolvable connections are offline", arguments: TransportUnderTest.allCases)
  func offline(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let port = try FreePort.refused()
    let refused = try await transport.failure(TransportRequest(.get, "http://127.0.0.1:\(port)/"))
    #expect(refused.kind == .offline)
    #expect(refused.message.hasPrefix("cannot reach 127.0.0.1:\(port): "))
    #expect(refused.isTransient)
    // No query can have a label of 64 bytes (RFC 1035 §2.3.4): no name server is asked, since some
    // have an answer to all names.
    let name = String(repeating: "x", count: 64) + ".invalid"
    let unknown = try await transport.failure(TransportRequest(.get, "http://\(name)/"))
    #expect(unknown.kind == .offline)
    #expect(unknown.message.contains("\(name):80"))
  }

  @Test(
    "a server that never accepts is offline, and one that never answers has timed out",
    arguments: TransportUnderTest.allCases)
  func timeouts(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { exchange in
      exchange.waitForLeave()
      return false
    }
    defer { server.stop() }
    let late = try await transport.failure(
      TransportRequest(.get, server.url("/"), timeout: .seconds(2)))
    #expect(late.kind == .timedOut)
    // TLS with a server that only listens: the connection is never ready for a request.
    let unreachable = try await transport.failure(
      TransportRequest(
        .get, "https://127.0.0.1:\(server.port)/", timeout: .seconds(2),
        connectTimeout: .milliseconds(50)))
    // URLSession does not show when a connection is made.
    #expect(unreachable.kind == (kind == .libcurl ? .offline : .timedOut))
  }

  @Test(
    "a connection that breaks is an interruption",
    arguments: TransportUnderTest.allCases, ["/length", "/chunk", "/reset", "/none"])
  func interrupted(_ kind: TransportUnderTest, path: String) async throws {
    let transport = kind.make()
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
    let error = try await transport.failure(TransportRequest(.get, server.url(path)))
    #expect(error.kind == .interrupted)
    #expect(error.message.contains("127.0.0.1:\(server.port)"))
  }

  @Test(
    "a body over the limit is refused, counted after decompression",
    arguments: TransportUnderTest.allCases, ["/plain", "/chunked", "/gzip", "/zstd"])
  func tooLarge(_ kind: TransportUnderTest, path: String) async throws {
    let transport = kind.make()
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
    let error = try await transport.failure(
      TransportRequest(.get, server.url(path), responseLimit: 65_536))
    #expect(error.kind == .responseTooLarge)
    #expect(!error.isTransient)
  }

  @Test(
    "a body of exactly the limit is accepted, after decompression as well",
    arguments: TransportUnderTest.allCases)
  func atTheLimit(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer {
      $0.answer("200 OK", ["Content-Encoding: zstd"], CannedBodies.zstdBomb(blocks: 2))
    }
    defer { server.stop() }
    let request = TransportRequest(.get, server.url("/"), responseLimit: 256 << 10)
    #expect(try await transport.send(request).body == [UInt8](repeating: 0, count: 256 << 10))
  }

  @Test("redirects in a loop end after five", arguments: TransportUnderTest.allCases)
  func redirectLoop(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { $0.answer("302 Found", ["Location: /"]) }
    defer { server.stop() }
    #expect(try await transport.failure(TransportRequest(.get, server.url("/"))).kind == .other)
    #expect(server.count(.requested("/")) == 6)
  }

  @Test(
    "a redirect to a closed port is reported with the address that refuses",
    arguments: TransportUnderTest.allCases)
  func redirectToClosedPort(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let port = try FreePort.refused()
    let server = RawServer { $0.answer("302 Found", ["Location: http://127.0.0.1:\(port)/"]) }
    defer { server.stop() }
    let error = try await transport.failure(TransportRequest(.get, server.url("/")))
    #expect(error.kind == .offline)
    let (host, first) = ("127.0.0.1:\(port)", "127.0.0.1:\(server.port)")
    #expect(
      error.message.hasPrefix("cannot reach \(host) (a redirect from \(first)): "),
      "\(error.message)")
  }

  @Test(
    "a redirect to another scheme than http is refused",
    arguments: TransportUnderTest.allCases, ["file:///etc/passwd", "ftp://127.0.0.1/"])
  func redirectScheme(_ kind: TransportUnderTest, location: String) async throws {
    let transport = kind.make()
    let server = RawServer { $0.answer("302 Found", ["Location: \(location)"]) }
    defer { server.stop() }
    #expect(try await transport.failure(TransportRequest(.get, server.url("/"))).kind == .other)
  }

  @Test(
    "an answer that is not HTTP, or cannot be decoded, is an error of its own",
    arguments: TransportUnderTest.allCases,
    [
      "SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nnot gzip at all",
    ])
  func garbage(_ kind: TransportUnderTest, answer: String) async throws {
    let transport = kind.make()
    let server = RawServer { exchange in
      exchange.send(answer)
      return false
    }
    defer { server.stop() }
    #expect(try await transport.failure(TransportRequest(.get, server.url("/"))).kind == .other)
  }

  @Test("an invalid address is reported without an attempt", arguments: TransportUnderTest.allCases)
  func badAddress(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    #expect(
      try await transport.failure(TransportRequest(.get, "localhost:8080")).kind == .badAddress)
    #expect(try await transport.failure(TransportRequest(.get, "http://a{b}/")).kind == .badAddress)
  }
}
