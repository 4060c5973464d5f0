import FerryTestSupport
import Testing

@testable import FerryShell

@Suite("The gate of a shell", .hangLimit)
struct RequestGateTests {
  private static let gate = RequestGate(
    authority: "127.0.0.1:8123", token: Secret(text: "token"), cookie: Secret(text: "biscuit"))

  private static func head(
    _ target: String, _ method: RequestHead.Method = .get, _ changes: [String: String?] = [:]
  ) -> RequestHead {
    var fields: [String: String?] = [
      "host": "127.0.0.1:8123", "cookie": "ferry-shell=biscuit", "sec-fetch-site": "same-origin",
      "sec-fetch-mode": method == .get ? "no-cors" : "cors", "sec-fetch-dest": "empty",
    ]
    if method == .post {
      fields["origin"] = "http://127.0.0.1:8123"
      fields["ferry-page"] = "secret"
    }
    fields.merge(changes) { $1 }
    var head = RequestHead(method: method, target: target)
    head.fields = fields.compactMap { name, value in
      value.map { RequestHead.Field(name: name, value: $0) }
    }
    return head
  }

  private func status(_ head: RequestHead) -> Int? {
    do {
      _ = try Self.gate.route(head)
      return nil
    } catch {
      return error.status
    }
  }

  @Test("the page's own requests pass")
  func own() throws {
    let call = RequestGate.Route.call(page: 3, .call, secret: "secret")
    #expect(try Self.gate.route(Self.head("/token/3/-/call", .post)) == call)
    #expect(try Self.gate.route(Self.head("/token/")) == .begin)
    #expect(try Self.gate.route(Self.head("/token/3/a/b.js")) == .file(page: 3, path: "a/b.js"))
    #expect(try Self.gate.route(Self.head("/token/3/-/ferry.js")) == .script(page: 3))
    let link = RequestGate.Route.content(page: 3, link: "abc")
    #expect(try Self.gate.route(Self.head("/token/3/-/files/abc")) == link)
    // Browsers ask for the icon without the path's token and the cookie.
    #expect(try Self.gate.route(Self.head("/favicon.ico", .get, ["cookie": nil])) == .icon)
    #expect(try Self.gate.route(Self.head("/token/3/%C3%A9.png")) == .file(page: 3, path: "é.png"))
    // A web view that sends no marks.
    let plain: [String: String?] = [
      "sec-fetch-site": nil, "sec-fetch-mode": nil, "sec-fetch-dest": nil,
    ]
    #expect(status(Self.head("/token/3/-/call", .post, plain)) == nil)
  }

  @Test(
    "a request that differs in one mark gets nothing",
    arguments: [
      ("host", "localhost:8123"), ("host", "127.0.0.1"), ("host", "evil.example:8123"),
      ("host", "127.0.0.1:8124"), ("host", nil), ("origin", "http://evil.example"),
      ("origin", "null"), ("origin", "http://127.0.0.1:8124"), ("origin", "http://localhost:8123"),
      ("origin", "https://127.0.0.1:8123"), ("origin", nil), ("sec-fetch-site", "cross-site"),
      ("sec-fetch-site", "same-site"), ("sec-fetch-site", "none"), ("sec-fetch-dest", "iframe"),
      ("sec-fetch-dest", "frame"), ("sec-fetch-dest", "embed"), ("sec-fetch-dest", "object"),
      ("sec-fetch-dest", "serviceworker"), ("cookie", nil), ("cookie", "ferry-shell=biscuits"),
      ("cookie", "ferry-shell="), ("cookie", "ferry-shell=biscuit; ferry-shell=biscuit"),
      ("cookie", "xferry-shell=biscuit"), ("ferry-page", nil),
    ] as [(String, String?)])
  func marks(field: String, value: String?) {
    let found = status(Self.head("/token/3/-/call", .post, [field: value]))
    #expect(found == 403, "\(field): \(value ?? "none")")
  }

  @Test("a duplicate of a mark gets nothing")
  func duplicates() {
    for name in ["host", "origin", "cookie", "sec-fetch-site", "sec-fetch-dest", "ferry-page"] {
      var head = Self.head("/token/3/-/call", .post)
      guard let field = head.fields.first(where: { $0.name == name }) else { continue }
      head.fields.append(field)
      #expect(status(head) == 403, "\(name)")
    }
  }

  @Test(
    "another path gets nothing",
    arguments: [
      ("/", 404), ("/index.html", 404), ("/tokem/", 404), ("/token", 404), ("/token//a.js", 404),
      ("/token/0/a.js", 404), ("/token/x/a.js", 404), ("/token/1e3/a.js", 404),
      ("/token/3/", 404), ("/token/3/a//b", 404), ("/token/3/../a", 404), ("/token/3/./a", 404),
      ("/token/3/%2e%2e/a", 404), ("/token/3/a%2fb", 404), ("/token/3/a%5cb", 404),
      ("/token/3/%00", 404), ("/token/3/%zz", 404), ("/token/3/%ff", 404), ("/token/3/.env", 404),
      ("/token/3/-", 404), ("/token/3/-/", 404), ("/token/3/-/no", 404),
      ("/token/3/-/files/a/b", 404), ("/token/3/-/call", 405), ("/favicon.ico/a", 404),
      ("/favicon.ico?a", 404),
    ])
  func paths(target: String, expected: Int) {
    #expect(status(Self.head(target)) == expected, "\(target)")
  }

  @Test("only calls are POST requests, and only the opening address may be reached from outside")
  func methods() {
    #expect(status(Self.head("/token/3/a.js", .post)) == 405)
    #expect(status(Self.head("/token/", .post)) == 405)
    let outside: [String: String?] = [
      "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document",
      "cookie": nil,
    ]
    #expect(status(Self.head("/-/open/x", .get, outside)) == nil)
    #expect(status(Self.head("/-/open/x", .head, outside)) == 403)
    #expect(
      status(Self.head("/-/open/x", .get, outside.merging(["sec-purpose": "prefetch"]) { $1 }))
        == 403)
    #expect(
      status(Self.head("/-/open/x", .get, outside.merging(["sec-fetch-dest": "iframe"]) { $1 }))
        == 403)
    #expect(
      status(Self.head("/-/open/x", .get, outside.merging(["sec-fetch-mode": "no-cors"]) { $1 }))
        == 403)
    #expect(status(Self.head("/token/", .get, outside)) == 403)
  }
}
