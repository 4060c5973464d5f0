import FerryNetworking
import FerryTestSupport
import Foundation
import Testing

@Suite("Requests of the transport", .hangLimit)
struct TransportRequestTests {

  @Test(
    "an exchange sends a body and returns status, fields and body",
    arguments: TransportUnderTest.allCases)
  func plain(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { exchange in
      exchange.answer(
        "201 Created", ["X-Method: \(exchange.method)", "A: 1", "a: 2"], exchange.body)
    }
    defer { server.stop() }
    for method in [TransportMethod.post, .put, .patch, .delete, .get] {
      if kind == .urlSession && method == .get { continue }
      let body = Array("\(method) body\0".utf8)
      let request = TransportRequest(method, server.url("/x"), body: body)
      let response = try await transport.send(request)
      #expect(response.status == 201)
      #expect(response.headers["x-method"] == method.rawValue)
      // Foundation for Linux keeps one of the fields of a name, either one.
      let fields = kind == .libcurl ? ["1, 2"] : ["1", "2"]
      #expect(fields.contains(response.headers["A"] ?? ""))
      #expect(response.body == body)
    }
    #expect(server.count(.accepted) == 1)
  }

  @Test("URLSession sends no body with GET, and the request fails before it is sent")
  func bodyOfGet() async throws {
    let server = RawServer { $0.answer("200 OK") }
    defer { server.stop() }
    let request = TransportRequest(.get, server.url("/"), body: [1])
    let error = try await URLSessionTransport().failure(request)
    #expect(error.kind == .other)
    #expect(error.message.hasPrefix("URLSession cannot send a body with GET"))
    #expect(server.count(.requested("/")) == 0)
  }

  @Test(
    "a request's fields are sent as they are, and the transport adds none but its own",
    arguments: TransportUnderTest.allCases)
  func fields(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { exchange in
      let lines = exchange.headers.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      return exchange.answer("200 OK", [], Array(lines.joined(separator: "\n").utf8))
    }
    defer { server.stop() }
    let request = TransportRequest(
      .post, server.url("/"), headers: ["Authorization": "Bearer x", "Empty": ""],
      body: [UInt8](repeating: 65, count: 2 << 20))
    let response = try await transport.send(request)
    var expected = [
      "accept=*/*", "authorization=Bearer x", "content-length=2097152", "empty=",
      "host=127.0.0.1:\(server.port)", "user-agent=ferry/\(ClientVersion.current)",
    ]
    // The codings and the language of URLSession are the system's.
    expected +=
      kind == .libcurl
      ? ["accept-encoding=zstd, gzip"]
      : ["connection=keep-alive", "content-type=application/octet-stream"]
    let text = String(decoding: response.body, as: UTF8.self)
    let lines = text.split(separator: "\n").map(String.init)
    let known = lines.filter { line in
      kind == .libcurl || !["accept-encoding=", "accept-language="].contains { line.hasPrefix($0) }
    }
    #expect(known.sorted() == expected.sorted())
  }

  @Test(
    "a field that contains a line break is refused",
    arguments: TransportUnderTest.allCases,
    [
      ("X", "a\r\nB: c"), ("X\r\nB", "c"), ("X", "a\0b"), ("", "a"), ("X Y", "a"), ("X:", "a"),
    ])
  func injection(_ kind: TransportUnderTest, field: (name: String, value: String)) async throws {
    let transport = kind.make()
    let request = TransportRequest(.get, "http://127.0.0.1:1/", headers: [field.name: field.value])
    #expect(try await transport.failure(request).kind == .other)
  }

  @Test("answers to HEAD and with status 204 have no body", arguments: TransportUnderTest.allCases)
  func bodiless(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { exchange in
      exchange.method == "HEAD"
        ? exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n")
        : exchange.send("HTTP/1.1 204 No Content\r\n\r\n")
    }
    defer { server.stop() }
    let empty = try await transport.send(TransportRequest(.get, server.url("/")))
    #expect(empty == TransportResponse(status: 204))
    let head = try await transport.send(TransportRequest(.head, server.url("/")))
    #expect(head.headers["Content-Length"] == "999999999999")
    #expect(head.body.isEmpty)
    #expect(server.count(.accepted) == 1)
  }

  @Test(
    "gzip is decoded, and libcurl leaves a body undecoded if the request asks for its own coding",
    arguments: TransportUnderTest.allCases)
  func decoding(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { exchange in
      exchange.answer("200 OK", ["Content-Encoding: gzip"], CannedBodies.gzip)
    }
    defer { server.stop() }
    var request = TransportRequest(.get, server.url("/"))
    let text = String(repeating: "ferry ", count: 40)
    #expect(try await transport.send(request).body == Array(text.utf8))
    request.headers["Accept-Encoding"] = "gzip"
    let body = try await transport.send(request).body
    #expect(body == (kind == .libcurl ? CannedBodies.gzip : Array(text.utf8)))
  }

  @Test("a body of 16 MiB is received whole", arguments: TransportUnderTest.allCases)
  func large(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let body = (0..<(16 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    let server = RawServer { $0.answer("200 OK", [], body) }
    defer { server.stop() }
    #expect(try await transport.send(TransportRequest(.get, server.url("/"))).body == body)
  }

  @Test(
    "redirects keep a POST's body but not credentials for another host",
    arguments: TransportUnderTest.allCases)
  func redirects(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let other = RawServer { $0.answer("200 OK", ["Seen: \($0.headers["authorization"] ?? "-")"]) }
    let server = RawServer { exchange in
      switch exchange.path {
      case "/moved": exchange.answer("301 Moved", ["Location: /found"], Array("not this".utf8))
      case "/found": exchange.answer("302 Found", ["Location: /here"])
      case "/other": exchange.answer("307 -", ["Location: \(other.url("/"))"])
      case "/see": exchange.answer("303 -", ["Location: /here"])
      default: exchange.answer("200 OK", ["Method: \(exchange.method)"], exchange.body)
      }
    }
    defer { server.stop(); other.stop() }
    let kept = try await transport.send(
      TransportRequest(.post, server.url("/moved"), body: [1, 2]))
    #expect(kept.headers["Method"] == "POST" && kept.body == [1, 2])
    let seen = try await transport.send(TransportRequest(.post, server.url("/see"), body: [1]))
    #expect(seen.headers["Method"] == "GET" && seen.body == [])
    let put = try await transport.send(TransportRequest(.put, server.url("/see"), body: [1]))
    #expect(put.status == 303)
    let credentials: TransportHeaders = ["Authorization": "Bearer x"]
    let away = try await transport.send(
      TransportRequest(.get, server.url("/other"), headers: credentials))
    #expect(away.headers["Seen"] == "-")
  }

  @Test(
    "redirects to another origin are followed without a body and without private fields",
    arguments: TransportUnderTest.allCases)
  func otherOrigin(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let other = RawServer { $0.answer("200 OK", ["Method: \($0.method)"]) }
    let server = RawServer { exchange in
      exchange.answer(
        exchange.path == "/see" ? "303 See Other" : exchange.path == "/308" ? "308 -" : "307 -",
        ["Location: \(other.url(exchange.path))"])
    }
    defer { server.stop(); other.stop() }
    func refused(_ request: TransportRequest) async -> Bool {
      do {
        _ = try await transport.send(request)
        return false
      } catch {
        return error.kind == .redirectRefused
      }
    }
    for path in ["/307", "/308"] {
      #expect(await refused(TransportRequest(.post, server.url(path), body: [1, 2])))
      #expect(other.count(.requested(path)) == 0)
    }
    let see = TransportRequest(.post, server.url("/see"), body: [1])
    #expect(try await transport.send(see).headers["Method"] == "GET")
    var keyed = TransportRequest(.get, server.url("/key"), headers: ["X-Key": "secret"])
    #expect(try await transport.send(keyed).status == 200)
    keyed.privateFields = ["X-Key"]
    #expect(await refused(keyed))
    var own = TransportRequest(.get, server.url("/own"))
    own.redirects = .withinOrigin
    #expect(await refused(own))
    #expect(other.count(.requested("/own")) == 0 && other.count(.requested("/key")) == 1)
  }

  @Test("the size of a head is bounded", arguments: TransportUnderTest.pausing, [true, false])
  func endlessHead(_ kind: TransportUnderTest, isInterim: Bool) async throws {
    let transport = kind.make()
    let server = RawServer { exchange in
      exchange.send("HTTP/1.1 \(isInterim ? "103 Early Hints" : "200 OK")\r\n")
      while exchange.send(isInterim ? "A: b\r\n\r\nHTTP/1.1 103 -\r\n" : "A: b\r\n") {}
      return false
    }
    defer { server.stop() }
    await #expect {
      try await transport.send(TransportRequest(.get, server.url("/")))
    } throws: {
      ($0 as? TransportError)?.kind == .responseTooLarge
    }
  }

  @Test("a proxy is used, except for loopback")
  func proxy() async throws {
    let proxy = RawServer { $0.answer("200 OK", [], Array($0.path.utf8)) }
    let server = RawServer { $0.answer("200 OK", [], Array("direct".utf8)) }
    defer { server.stop(); proxy.stop() }
    var configuration = TransportConfiguration()
    configuration.proxy = proxy.url("")
    let transport = CurlTransport(configuration: configuration)
    let direct = try await transport.send(TransportRequest(.get, server.url("/")).patient)
    #expect(direct.body == Array("direct".utf8))
    let proxied = try await transport.send(
      TransportRequest(.get, "http://ferry.invalid/x").patient)
    #expect(proxied.body == Array("http://ferry.invalid/x".utf8))
  }

  @Test(
    "200 requests run at once, and 200 more over the same connections",
    arguments: TransportUnderTest.allCases)
  func concurrent(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { $0.answer("200 OK", [], Array($0.path.utf8)) }
    defer { server.stop() }
    for _ in 1...2 {
      try await withThrowingTaskGroup { group in
        for index in 0..<200 {
          group.addTask { [transport] in
            let response = try await transport.send(
              TransportRequest(.get, server.url("/\(index)")))
            #expect(response.body == Array("/\(index)".utf8))
          }
        }
        try await group.waitForAll()
      }
    }
    #expect(server.count(.accepted) <= 200)
  }

  @Test("one connection serves one request after the other", arguments: TransportUnderTest.allCases)
  func reuse(_ kind: TransportUnderTest) async throws {
    let transport = kind.make()
    let server = RawServer { $0.answer("200 OK") }
    defer { server.stop() }
    for _ in 1...50 {
      _ = try await transport.send(TransportRequest(.get, server.url("/")))
    }
    #expect(server.count(.accepted) == 1)
  }

  @Test("no more connections are opened than configured")
  func connectionLimit() async throws {
    let server = RawServer { $0.answer("200 OK") }
    defer { server.stop() }
    var configuration = TransportConfiguration()
    configuration.connectionsPerHostMax = 3
    let transport = CurlTransport(configuration: configuration)
    try await withThrowingTaskGroup { group in
      for _ in 0..<60 {
        group.addTask { _ = try await transport.send(TransportRequest(.get, server.url("/"))) }
      }
      try await group.waitForAll()
    }
    #expect(server.count(.accepted) <= 3)
  }
}
