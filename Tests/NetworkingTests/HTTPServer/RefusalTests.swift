import FerryCompression
import FerryTestSupport
import Testing

@testable import FerryHTTPServer

@Suite("Refused requests", .hangLimit)
struct RefusalTests {
  static let limit = 64 << 10

  /// Runs against a server with a body limit and with rendered refusals.
  func withLimitedServer(_ body: (HTTPServer) async throws -> Void) async throws {
    let configuration = HTTPServer.Configuration(
      bodyLimit: Self.limit,
      failure: { failure, _ in
        HTTPResponse(
          status: failure.status, headers: ["Content-Type": "application/problem+json"],
          body: .bytes(Array("{\"detail\":\"\(failure.detail)\"}".utf8)))
      })
    try await withServer(configuration, handler: describe, body)
  }

  @Test("a body at the limit is accepted, and the connection stays open")
  func atLimit() async throws {
    try await withLimitedServer { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        for _ in 0..<3 {
          let body = [UInt8](repeating: 7, count: Self.limit)
          #expect(try client.exchange("POST", "/", body: body).text == "POST / \(Self.limit)")
        }
      }
    }
  }

  @Test(
    "a declared body over the limit is answered 413, and the client can read the answer",
    arguments: [64 << 10 + 1, 1 << 20, 8 << 20])
  func overLimit(excess: Int) async throws {
    try await withLimitedServer { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        let response = try client.exchange(
          "POST", "/", body: [UInt8](repeating: 7, count: Self.limit + excess))
        #expect(response.status == 413)
        #expect(response.headers["connection"] == "close")
        #expect(response.headers["content-type"] == "application/problem+json")
        #expect(response.text.contains("larger than 65536 bytes"))
        #expect(try client.isClosedByPeer())
      }
    }
  }

  @Test("a declared body over the limit is refused before it is sent")
  func overLimitWithoutSending() async throws {
    try await withLimitedServer { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        try client.send(
          "POST / HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 9999999\r\n\r\n")
        #expect(try client.response().status == 413)
      }
    }
  }

  @Test("a chunked body is answered 413 as soon as it exceeds the limit")
  func chunkedOverLimit() async throws {
    try await withLimitedServer { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        try client.send("POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
        let chunk = Array("4000\r\n".utf8) + [UInt8](repeating: 1, count: 0x4000) + [13, 10]
        for _ in 0..<64 { try client.send(chunk) }
        #expect(try client.response().status == 413)
        #expect(try client.isClosedByPeer())
      }
    }
  }

  @Test("a chunked body within the limit is accepted")
  func chunked() async throws {
    try await withLimitedServer { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        try client.send("POST /c HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in ["3\r\nabc\r\n", "2;x=y\r\nde\r\n", "0\r\n\r\n"] { try client.send(piece) }
        #expect(try client.response().text == "POST /c 5")
      }
    }
  }

  @Test("compressed bodies are decoded within the limit", arguments: ContentCoding.allCases)
  func codedBody(coding: ContentCoding) async throws {
    let fitting = try coding.compress([UInt8](repeating: 0, count: Self.limit))
    let bomb = try coding.compress([UInt8](repeating: 0, count: 16 << 20))
    try await withLimitedServer { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        let headers = ["Content-Encoding": coding.rawValue]
        let answer = try client.exchange("POST", "/", headers: headers, body: fitting)
        #expect(answer.text == "POST / \(Self.limit)")
        #expect(try client.exchange("POST", "/", headers: headers, body: bomb).status == 413)
        let damaged = Array(fitting.dropLast())
        #expect(try client.exchange("POST", "/", headers: headers, body: damaged).status == 400)
        #expect(try client.exchange("POST", "/", body: [1]).status == 200)
      }
    }
  }

  @Test("an unknown coding is answered 415 with the known codings")
  func unknownCoding() async throws {
    try await withLimitedServer { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        let response = try client.exchange(
          "POST", "/", headers: ["Content-Encoding": "br"], body: [1, 2, 3])
        #expect(response.status == 415)
        #expect(response.headers["accept-encoding"] == "zstd, gzip")
        #expect(try client.exchange("GET", "/after").status == 200)
      }
    }
  }

  @Test("a malformed path is answered 400, and the connection stays open")
  func malformedPath() async throws {
    try await withLimitedServer { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        for target in ["/%zz", "/%ff", "nonsense"] {
          let response = try client.exchange("POST", target, body: [1, 2, 3])
          #expect(response.status == 400)
          #expect(response.headers["content-type"] == "application/problem+json")
        }
        #expect(try client.exchange("GET", "/after").status == 200)
      }
    }
  }

  @Test(
    "ambiguous framing is refused, and the connection is closed",
    arguments: [
      "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
      "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      "Content-Length: -1\r\n\r\n",
      "Content-Length: 3x\r\n\r\nabc",
      "No colon\r\n\r\n",
    ])
  func framing(rest: String) async throws {
    try await withLimitedServer { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        try client.send("POST / HTTP/1.1\r\nHost: t\r\n" + rest)
        #expect(try client.response().status == 400)
        #expect(try client.isClosedByPeer())
      }
    }
  }

  @Test("a request line or headers above the connection's memory are answered 414 and 431")
  func headersTooLarge() async throws {
    try await withLimitedServer { server in
      try await onThread {
        let long = String(repeating: "x", count: 256 << 10)
        let line = try RawClient(port: server.port)
        #expect(try line.exchange("GET", "/" + long).status == 414)
        let headers = try RawClient(port: server.port)
        #expect(try headers.exchange("GET", "/", headers: ["X": long]).status == 431)
        let fitting = String(repeating: "x", count: 8 << 10)
        let client = try RawClient(port: server.port)
        #expect(try client.exchange("GET", "/" + fitting, headers: ["X": fitting]).status == 200)
      }
    }
  }

  @Test("a page of the layer below quotes nothing of the request, and closes the connection")
  func fixedPages() async throws {
    try await withLimitedServer { server in
      try await onThread {
        let (mark, long) = ("<script>7f3a</script>", String(repeating: "x", count: 256 << 10))
        for (message, statuses) in [
          ("GET /\(mark)\(long) HTTP/1.1\r\nHost: t\r\n\r\n", [414]),
          ("GET / HTTP/1.1\r\nHost: t\r\n\(mark): \(mark)\(long)\r\n\r\n", [431]),
          ("GET / HTTP/7.\(mark)\r\nHost: t\r\n\r\n", [400, 505]),
          ("GET /\(mark) HTTP/3.0\r\nHost: t\r\n\r\n", [505]),
        ] {
          let client = try RawClient(port: server.port)
          try client.send(message)
          let answer = try client.response()
          #expect(statuses.contains(answer.status), "\(message.prefix(60))")
          #expect(!answer.text.contains("7f3a"), "\(answer.text)")
          #expect(answer.headers.values.allSatisfy { !$0.contains("7f3a") })
          #expect(try client.isCutOff())
        }
      }
    }
  }

  @Test("a client that leaves before its headers are complete is forgotten after the idle time")
  func abandonedHeaders() async throws {
    let exchanges = Collector<HTTPExchange>()
    let configuration = HTTPServer.Configuration(
      idleTimeout: .seconds(1), onComplete: { exchanges.add($0) })
    try await withServer(configuration, handler: describe) { server in
      try await onThread {
        try RawClient(port: server.port).send("GET /left HTTP/1.1\r\nHo")
      }
      #expect(await exchanges.values(1).first?.isComplete == false)
    }
  }

  @Test("a client that leaves during its body is forgotten")
  func abandonedUpload() async throws {
    let exchanges = Collector<HTTPExchange>()
    try await withServer(.init(onComplete: { exchanges.add($0) }), handler: describe) { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        try client.send("POST /left HTTP/1.1\r\nHost: t\r\nContent-Length: 1000\r\n\r\nabc")
      }
      let exchange = try #require(await exchanges.values(1).first)
      #expect(exchange.status == nil)
      #expect(!exchange.isComplete)
    }
  }
}
