import FerryTestSupport
import Testing

@testable import FerryShell

@Suite("Requests of a shell's page, read byte by byte", .hangLimit)
struct RequestParserTests {
  private static let get = "GET /a HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n"

  private func event(_ text: String) -> RequestParser.Event {
    var parser = RequestParser()
    parser.feed(Array(text.utf8))
    return parser.next()
  }

  @Test("a request arrives in any pieces")
  func pieces() {
    let text = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" + Self.get
    for size in 1...text.utf8.count {
      var parser = RequestParser()
      var (targets, bodies): ([String], [[UInt8]]) = ([], [])
      var rest = Array(text.utf8)[...]
      while true {
        switch parser.next() {
        case .head(let head):
          targets.append(head.target)
          parser.readBody()
        case .body(let body): bodies.append(body)
        case .fault(let status): Issue.record("\(status) in pieces of \(size)")
        case .more: break
        }
        if bodies.count == 2 { break }
        guard !rest.isEmpty else { continue }
        parser.feed(rest.prefix(size))
        rest = rest.dropFirst(size)
      }
      #expect(targets == ["/x", "/a"])
      #expect(bodies == [Array("abc".utf8), []])
      #expect(parser.isBetweenRequests)
    }
  }

  @Test("names of fields compare without case, and a duplicate has no value")
  func fields() throws {
    let text = "GET / HTTP/1.1\r\nHOST:  h \r\nCookie: a\r\ncookie: b\r\n\r\n"
    guard case .head(let head) = event(text) else {
      Issue.record("no head")
      return
    }
    #expect(head["host"] == "h")
    #expect(head["cookie"] == nil)
    #expect(head.has("cookie"))
  }

  @Test(
    "a request of another form is refused",
    arguments: [
      ("GET / HTTP/1.0\r\n\r\n", 505), ("GET /\r\n\r\n", 400), ("GET  / HTTP/1.1\r\n\r\n", 400),
      ("PUT / HTTP/1.1\r\n\r\n", 405), ("CONNECT h:1 HTTP/1.1\r\n\r\n", 405),
      ("GET http://h/ HTTP/1.1\r\n\r\n", 400), ("GET /?a HTTP/1.1\r\n\r\n", 400),
      ("GET /#a HTTP/1.1\r\n\r\n", 400), ("GET /\u{E9} HTTP/1.1\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost h\r\n\r\n", 400), ("GET / HTTP/1.1\r\n: h\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400), ("GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n", 400), ("GET / HTTP/1.1\r\nA: \u{1}\r\n\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: h\r\n\r\n", 411),
      ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
      ("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
      ("POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400),
      ("POST / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n", 413),
      ("POST / HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n", 417),
      ("GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n", 400),
      ("GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", 417),
      ("GET /\(String(repeating: "a", count: 3_000)) HTTP/1.1\r\n\r\n", 414),
      ("GET / HTTP/1.1\r\n\(String(repeating: "A: b\r\n", count: 65))\r\n", 431),
      ("GET / HTTP/1.1\r\nA: \(String(repeating: "b", count: 17_000))", 431),
    ])
  func refused(text: String, status: Int) {
    #expect(event(text) == .fault(status: status), "\(text.prefix(60))")
  }
}
