import FerryTestSupport
import Testing

@testable import FerryNetworking

@Suite("The transport's values", .hangLimit)
struct TransportValueTests {
  @Test("header names compare without case, and order and duplicates are kept")
  func headers() {
    var headers: TransportHeaders = ["Vary": "a", "X": "1", "vary": "b"]
    #expect(headers["VARY"] == "a, b")
    #expect(headers.values(of: "vaRy") == ["a", "b"])
    #expect(headers["Absent"] == nil)
    headers["x"] = "2"
    #expect(headers == ["vary": "a", "Vary": "b", "X": "2"])
    headers["Vary"] = nil
    #expect(headers.fields.map(\.name) == ["x"])
    #expect(headers != ["X": "3"])
  }

  @Test(
    "a valid address is parsed",
    arguments: [
      ("http://a", "a:80"), ("https://a", "a:443"), ("HTTP://a:8080/x?y#z", "a:8080"),
      ("http://u:p@a:1", "a:1"), ("http://u@v@a/", "a:80"), ("http://[::1]:9/x", "[::1]:9"),
      ("https://[::1]", "[::1]:443"), ("http://a?b:9", "a:80"), ("http://a:/", "a:80"),
      ("http://a/\u{301}@b:9", "a:80"),
    ])
  func address(url: String, endpoint: String) throws {
    #expect(try RequestAddress(url).endpoint == endpoint)
  }

  @Test(
    "an invalid address is refused",
    arguments: [
      "", "a", "a:80", "/x", "ftp://a", "file:///etc/passwd", "http://", "http:///x", "http://:80",
      "http://a:0", "http://a:65536", "http://a:x", "http://a b", "http://a\0b",
      "http://a/\r\nX: y",
      "http://[::1", "http://[::1]x",
    ])
  func badAddress(url: String) {
    #expect { try RequestAddress(url) } throws: { ($0 as? TransportError)?.kind == .badAddress }
  }

  @Test(
    "loopback never uses a proxy",
    arguments: [
      ([:], "localhost,127.0.0.0/8,::1"), (["NO_PROXY": "a"], "a,localhost,127.0.0.0/8,::1"),
      (["NO_PROXY": "a", "no_proxy": "b"], "b,localhost,127.0.0.0/8,::1"), (["no_proxy": "*"], "*"),
    ] as [([String: String], String)])
  func proxyExceptions(environment: [String: String], list: String) {
    #expect(ProxyExceptions.list(environment: environment) == list)
  }

  @Test("a head is the last one, without interim responses, redirects and trailers")
  func heads() {
    let lines = [
      "HTTP/1.1 100 Continue\r\n", "\r\n", "HTTP/1.1 302 Found\r\n", "Location: /b\r\n", "\r\n",
      "HTTP/2 200 \r\n", "A:1\r\n", "b: \t2 \r\n", "C: 3\r\n", "  4\r\n", "no colon\r\n", "\r\n",
      "Trailer: x\r\n", "\r\n",
    ]
    var parser = ResponseHeadParser(followsRedirects: true)
    let heads = lines.compactMap { parser.feed(Array($0.utf8)) }
    #expect(heads == [ResponseHead(status: 200, headers: ["A": "1", "b": "2", "C": "3 4"])])
  }

  @Test("a redirect that is not followed is an answer")
  func unfollowed() {
    var parser = ResponseHeadParser(followsRedirects: false)
    let lines = ["HTTP/1.1 302 Found", "Location: /b", ""]
    #expect(lines.compactMap { parser.feed(Array($0.utf8)) }.map(\.status) == [302])
    parser = ResponseHeadParser(followsRedirects: true)
    #expect(
      ["HTTP/1.1 304 -", ""].compactMap { parser.feed(Array($0.utf8)) }.map(\.status) == [304])
  }
}
