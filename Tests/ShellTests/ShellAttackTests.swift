import FerryTestSupport
import Foundation
import Testing

@testable import FerryShell

@Suite("A shell under attack", .hangLimit)
struct ShellAttackTests {
  private static let echo = Service(
    "probe.echo", permission: "repeats", argument: .any, result: .any
  ) { $0.argument }
  private static let add = Service(
    "probe.add", permission: "adds",
    argument: .object([.required("a", .integer(0...9))]), result: .integer(0...10)
  ) { .integer(2 * ($0.argument["a"]?.integer ?? 0)) }
  private static let broken = Service(
    "probe.broken", permission: "fails", argument: .any, result: .any
  ) { _ in throw TestSupportError("the password is swordfish") }

  private func visitor(_ limits: LoopbackServer.Limits = .init()) async throws -> ShellVisitor {
    try await ShellVisitor(
      [Self.echo, Self.add, Self.broken], declared: ["probe", "net.request"],
      granted: ["probe", "device.info"], limits: limits)
  }

  @Test("the page itself calls, and gets an answer")
  func own() async throws {
    let answer = try await visitor().call("probe.echo", #"{"a":[1,"é"]}"#)
    #expect(answer.status == 200)
    #expect(answer.text == #"{"value":{"a":[1,"é"]}}"#)
  }

  @Test("a shell whose socket the system has ended listens again on its port, until it stops")
  func endedSocket() async throws {
    let visitor = try await visitor()
    let port = visitor.shell.port
    for _ in 0..<3 {
      let listener = try #require(Self.listener(on: port))
      #expect(shutdown(listener, Int32(SHUT_RDWR)) == 0)
      try await eventually("the shell to listen") { Self.listener(on: port) != nil }
      #expect(try await visitor.call("probe.echo").status == 200)
    }
    visitor.shell.stop()
    #expect(throws: (any Error).self) { _ = try LoopbackSocket.connect(to: port) }
  }

  /// Returns this process's listening descriptor for a port.
  private static func listener(on port: UInt16) -> Int32? {
    (3..<4_096).first { descriptor in
      var (isListening, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
      guard
        getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &length) == 0,
        isListening == 1
      else { return false }
      var (address, size) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
      let status = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          getsockname(descriptor, $0, &size)
        }
      }
      return status == 0 && UInt16(bigEndian: address.sin_port) == port
    }
  }

  @Test("the browser's report of a violation fails the page, and one of an extension does not")
  func report() async throws {
    func report(_ members: String) -> PageFailure? {
      BridgeRequest.report(Array(#"{"csp-report":{\#(members)}}"#.utf8))
    }
    #expect(
      report(#""effective-directive":"style-src-attr","blocked-uri":"inline""#)
        == PageFailure(.violated, "style-src-attr inline"))
    #expect(
      report(#""violated-directive":"img-src","blocked-uri":"https://evil.example/a.png""#)
        == PageFailure(.violated, "img-src https://evil.example/a.png"))
    #expect(report("") == PageFailure(.violated, " "))
    let long = String(repeating: "a", count: 2_000)
    #expect(report(#""effective-directive":"\#(long)""#)?.detail.count == 500)
    for address in ["moz-extension://a/b.js", "chrome-extension", "safari-web-extension://x"] {
      #expect(report(#""effective-directive":"script-src","blocked-uri":"\#(address)""#) == nil)
      #expect(report(#""blocked-uri":"inline","source-file":"\#(address)""#) == nil)
    }
    for bad in ["", "{", "[]", "1", #"{"other":1}"#] {
      #expect(BridgeRequest.report(Array(bad.utf8)) == nil, "\(bad)")
    }
  }

  @Test("a report needs the page's origin and cookie, and no more than 64 KiB")
  func reporting() async throws {
    let visitor = try await visitor()
    let body = #"{"csp-report":{"effective-directive":"style-src-attr","blocked-uri":"inline"}}"#
    // Browsers send it without the secret.
    let changes: [String: String?] = ["Ferry-Page": nil, "Content-Type": "application/csp-report"]
    for (name, value) in [
      ("Cookie", nil), ("Origin", nil), ("Origin", "http://evil.example"),
      ("Sec-Fetch-Site", "cross-site"),
    ] as [(String, String?)] {
      let refused = try await visitor.post("report", body, changes.merging([name: value]) { $1 })
      #expect(refused.status == 403 && refused.body.isEmpty, "\(name)")
    }
    let large = String(repeating: " ", count: 64 << 10) + body
    #expect(try await visitor.post("report", large, changes).status == 413)
    #expect(visitor.failures().isEmpty)
    #expect(try await visitor.post("report", "{", changes).status == 204)
    #expect(visitor.failures().isEmpty)
    #expect(try await visitor.post("report", body, changes).status == 204)
    #expect(visitor.failures() == ["violated: style-src-attr inline"])
    // The page does not confirm the version afterwards.
    _ = try await visitor.post("ready", "{}")
    #expect(visitor.confirmations == 0)
  }

  @Test("every answer keeps other pages out")
  func fields() async throws {
    let visitor = try await visitor()
    for answer in [
      try await visitor.get(visitor.base + "app.js"), try await visitor.call("probe.echo"),
      try await visitor.get("/"),
    ] {
      let policy = answer.fields["content-security-policy"] ?? ""
      #expect(policy.contains("default-src 'none'; script-src 'self'"))
      #expect(policy.contains("frame-ancestors 'none'"))
      #expect(!policy.contains("unsafe"))
      #expect(answer.fields["x-frame-options"] == "DENY")
      #expect(answer.fields["cross-origin-resource-policy"] == "same-origin")
      #expect(answer.fields["referrer-policy"] == "no-referrer")
      #expect(answer.fields["cache-control"] == "no-store")
      #expect(answer.fields["access-control-allow-origin"] == nil)
    }
  }

  @Test(
    "another origin, a rebinding host, a frame and a program without the secrets get nothing",
    arguments: [
      ["Origin": "http://evil.example"], ["Origin": "null"], ["Origin": nil],
      ["Host": "evil.example"], ["Host": "localhost:1"], ["Sec-Fetch-Site": "cross-site"],
      ["Sec-Fetch-Site": "same-site"], ["Sec-Fetch-Dest": "iframe"], ["Ferry-Page": nil],
      ["Ferry-Page": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"], ["Ferry-Page": ""], ["Cookie": nil],
      ["Cookie": "ferry-shell=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"],
    ] as [[String: String?]])
  func strangers(changes: [String: String?]) async throws {
    let visitor = try await visitor()
    let call = try await visitor.call("probe.echo", "1", changes)
    #expect(call.status == 403, "\(changes)")
    #expect(call.body.isEmpty)
    guard changes.keys.first != "Ferry-Page" else { return }
    // The files of the bundle are as closed as the calls.
    if changes != ["Origin": nil] {
      let file = try await visitor.get(visitor.base + "app.js", changes)
      #expect(file.status == 403, "\(changes)")
      #expect(file.body.isEmpty)
    }
  }

  @Test("the secret of one page does not serve another page")
  func pages() async throws {
    let visitor = try await visitor()
    let again = try await visitor.get(visitor.root, ["Sec-Fetch-Mode": "navigate"])
    let other = try #require(again.fields["location"])
      .replacingOccurrences(of: "index.html", with: "")
    #expect(other != visitor.base)
    let body = Array(#"{"service":"probe.echo"}"#.utf8)
    let answer = try await visitor.client.exchange(
      ShellVisitor.request("POST", other + "-/call", visitor.fields(), body))
    #expect(answer.status == 403)
  }

  @Test("an address opens the page once")
  func once() async throws {
    let visitor = try await visitor()
    let address = visitor.shell.makeAddress()
    let path = String(address.dropFirst("http://127.0.0.1:\(visitor.shell.port)".count))
    let plain: [String: String?] = ["Origin": nil, "Cookie": nil, "Sec-Fetch-Mode": "navigate"]
    let preview = try await visitor.get(path, plain.merging(["Sec-Purpose": "prefetch"]) { $1 })
    #expect(preview.status == 403)
    #expect(try await visitor.get(path, plain).fields["set-cookie"] != nil)
    let second = try await visitor.get(path, plain)
    #expect(second.status == 403)
    #expect(second.fields["set-cookie"] == nil)
    #expect(second.text.contains("This address was used"))
  }

  @Test("the cookie is for this page only, and no script can read it")
  func cookie() async throws {
    let visitor = try await visitor()
    let path = visitor.shell.makeAddress().dropFirst("http://127.0.0.1:\(visitor.shell.port)".count)
    let set = try await visitor.get(
      String(path), ["Origin": nil, "Cookie": nil, "Sec-Fetch-Mode": "navigate"]
    ).fields["set-cookie"]
    #expect(try #require(set).hasSuffix("; Path=\(visitor.root); HttpOnly; SameSite=Strict"))
  }

  @Test("a service that is unknown, undeclared or not granted is not called")
  func services() async throws {
    let visitor = try await visitor()
    #expect(try await visitor.call("probe.none").code() == "unknown_service")
    #expect(try await visitor.call("device.info").code() == "not_declared")
    #expect(try await visitor.call("net.request").code() == "not_granted")
    #expect(try await visitor.call("probe").code() == "unknown_service")
    #expect(
      try await visitor.post("watch", #"{"watch":1,"service":"net.request"}"#).code()
        == "not_granted")
  }

  @Test("arguments and results of another form are refused, and an error reveals nothing")
  func forms() async throws {
    let visitor = try await visitor()
    #expect(try await visitor.call("probe.add", #"{"a":4}"#).text == #"{"value":8}"#)
    for bad in [#"{"a":10}"#, #"{"a":"4"}"#, "{}", "null", #"{"a":4,"b":1}"#] {
      #expect(try await visitor.call("probe.add", bad).code() == "invalid_argument", "\(bad)")
    }
    #expect(try await visitor.call("probe.add", #"{"a":9}"#).code() == "invalid_result")
    let failed = try await visitor.call("probe.broken")
    #expect(try failed.code() == "failed")
    #expect(!failed.text.contains("swordfish"))
    for bad in ["", "{", "[]", #"{"service":1}"#, #"{"service":"a.b","x":1}"#] {
      #expect(try await visitor.post("call", bad).code() == "bad_request", "\(bad)")
    }
  }

  @Test(
    "no path leads out of the bundle",
    arguments: [
      "../../../etc/passwd", "..%2f..%2fetc/passwd", "%2e%2e/%2e%2e/etc/passwd", "....//etc/passwd",
      "%2fetc%2fpasswd", "app.js%00.html", ".git/config", "ferry-bundle.json/../app.js",
    ])
  func traversal(path: String) async throws {
    let visitor = try await visitor()
    let answer = try await visitor.get(visitor.base + path)
    #expect(answer.status == 404)
    #expect(answer.body.isEmpty)
  }

  @Test("a link to a file that is no document shows the file, and begins no page load")
  func linkedFile() async throws {
    let visitor = try await visitor()
    let navigation: [String: String?] = ["Sec-Fetch-Mode": "navigate", "Ferry-Page": nil]
    let script = try await visitor.get(visitor.base + "app.js", navigation)
    #expect(script.status == 200 && script.text == "let a = 1")
    #expect(script.fields["content-type"] == "text/javascript; charset=utf-8")
    #expect(try await visitor.get(visitor.base + "none.pdf", navigation).status == 404)
    #expect(try await visitor.get(visitor.root + "999/app.js", navigation).status == 404)
    let document = try await visitor.get(visitor.base + "index.html", navigation)
    #expect(document.status == 303)
  }

  @Test("a request that is too large is refused before it is read")
  func oversize() async throws {
    let visitor = try await visitor()
    var fields = visitor.fields()
    fields["Content-Length"] = "\(5 << 20)"
    let head = ShellVisitor.request("POST", "\(visitor.base)-/call", fields)
    #expect(try await visitor.client.exchange(head).status == 413)
    fields["Content-Length"] = "\(17 << 20)"
    let upload = ShellVisitor.request("POST", "\(visitor.base)-/upload", fields)
    #expect(try await visitor.client.exchange(upload).status == 413)
    let long = Array("GET / HTTP/1.1\r\nA: \(String(repeating: "a", count: 20_000))".utf8)
    #expect(try await visitor.client.exchange(long).status == 431)
  }

  @Test("slow and idle connections end, and never keep the page out")
  func slow() async throws {
    var limits = LoopbackServer.Limits()
    limits.connections = 4
    limits.headTime = .seconds(3)
    let visitor = try await visitor(limits)
    // More silent connections than there are places; each ends by itself or for another one.
    let port = visitor.shell.port
    var sockets: [Int32] = []
    for count in 1...12 {
      let socket = try LoopbackSocket.connect(to: port)
      sockets.append(socket)
      if count % 2 == 0 { _ = LoopbackSocket.write(socket, Array("GET / HT".utf8)[...]) }
      #expect(try await visitor.call("probe.echo", "1").text == #"{"value":1}"#)
    }
    let silent = sockets
    try await RawClient.blocking {
      for socket in silent {
        #expect(RawClient.readAll(socket).isEmpty)
        close(socket)
      }
    }
  }

  @Test("large data has an address for the page alone, and parts of it can be read")
  func files() async throws {
    let visitor = try await visitor()
    let content = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
    let upload = try await visitor.client.exchange(
      ShellVisitor.request(
        "POST", "\(visitor.base)-/upload", visitor.fields(["Content-Type": "image/png"]), content))
    let address = try #require(try upload.object()["file"] as? String)
    let whole = try await visitor.get(address, ["Origin": nil, "Ferry-Page": nil])
    #expect(whole.body == content)
    #expect(whole.fields["content-type"] == "image/png")
    #expect(whole.fields["content-security-policy"]?.contains("sandbox") == true)
    let part = try await visitor.get(address, ["Range": "bytes=10-19"])
    #expect(part.status == 206)
    #expect(part.body == Array(content[10..<20]))
    #expect(part.fields["content-range"] == "bytes 10-19/100000")
    #expect(try await visitor.get(address, ["Range": "bytes=200000-"]).status == 416)
    #expect(try await visitor.get(address, ["Cookie": nil]).status == 403)
    #expect(try await visitor.get(String(address.dropLast())).status == 404)
  }

  @Test("uploaded documents and scripts never run as parts of the page")
  func passive() async throws {
    let visitor = try await visitor()
    for type in [
      "text/html", "text/javascript", "image/svg+xml", "application/xhtml+xml",
      // Of two types, browsers take the last one.
      "image/png, text/javascript", "text/plain, text/html", "image/png,text/javascript",
      "text/plain text/html", "image/", "/png",
    ] {
      let upload = try await visitor.client.exchange(
        ShellVisitor.request(
          "POST", "\(visitor.base)-/upload", visitor.fields(["Content-Type": type]), [1]))
      let address = try #require(try upload.object()["file"] as? String)
      let found = try await visitor.get(address)
      #expect(found.fields["content-type"] == "application/octet-stream", "\(type)")
      #expect(found.fields["x-content-type-options"] == "nosniff")
    }
    #expect(WebMediaType.passive("IMAGE/Png; a=b, text/html") == "image/png")
    #expect(WebMediaType.passive("text/plain ; charset=utf-8") == "text/plain")
  }

  @Test("a shell listens on the loopback address only")
  func loopback() async throws {
    let visitor = try await visitor()
    let result = try await ChildProcess.run(
      URL(filePath: "/bin/cat"), ["/proc/net/tcp"])
    let port = String(visitor.shell.port, radix: 16, uppercase: true)
    let padded = String(repeating: "0", count: 4 - port.count) + port
    let places = result.output.split(separator: "\n").filter { $0.contains(" 0A ") }
      .compactMap { $0.firstMatch(of: #/: ([0-9A-F]+):([0-9A-F]+) /#) }
      .filter { $0.2 == padded }.map { String($0.1) }
    #expect(places == ["0100007F"])
  }
}
