import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("Origins of web pages", .hangLimit)
struct WebOriginTests {
  @Test(
    "an origin is written as browsers write it",
    arguments: [
      ("https://app.example", "https://app.example"),
      ("HTTPS://App.Example:443", "https://app.example"),
      ("http://app.example:80", "http://app.example"),
      ("http://app.example:443", "http://app.example:443"),
      ("https://app.example:08443", "https://app.example:8443"),
      ("http://127.0.0.1:8000", "http://127.0.0.1:8000"), ("http://localhost", "http://localhost"),
      ("http://[::1]:5173", "http://[::1]:5173"),
      ("http://[2001:DB8:0:0:0:0:0:1]", "http://[2001:db8::1]"),
      ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
      ("http://a_b.example:65535", "http://a_b.example:65535"),
    ])
  func written(_ text: String, _ expected: String) throws {
    #expect(try WebOrigin(text).description == expected)
  }

  @Test(
    "a text that is not exactly one origin is refused with its reason",
    arguments: [
      ("*", WebOriginError.pattern), ("https://*.app.example", .pattern),
      ("https://app.example:*", .pattern), ("null", .null), ("NULL", .null), ("", .scheme),
      ("app.example", .scheme), ("//app.example", .scheme), ("ftp://app.example", .scheme),
      ("file:///index.html", .scheme), ("javascript:alert(1)", .scheme),
      (" https://app.example", .scheme), ("https://app.example/", .path),
      ("https://app.example/page", .path), ("https://app.example?x", .path),
      ("https://app.example#x", .path), ("https://app.example\\x", .path),
      ("https://a@app.example", .user), ("https://a:b@app.example", .user), ("https://", .host),
      ("https://app..example", .host), ("https://app.example.", .host),
      ("https://app example", .host), ("https://app.example ", .host),
      ("https://bücher.example", .host), ("https://app.example\r\n", .host),
      ("https://a.example,https://b.example", .path), ("http://127.1", .host),
      ("http://1.2.3.4.5", .host), ("http://0x7f000001", .host), ("http://2130706433", .host),
      ("http://[::1", .host), ("http://[::g]", .host), ("http://[::ffff:1.2.3.4]", .host),
      ("http://::1", .host), ("http://[::1]x:80", .host), ("https://app.example:", .port),
      ("https://app.example:0", .port), ("https://app.example:65536", .port),
      ("https://app.example:+80", .port), ("https://app.example:8a", .port),
      ("https://" + String(repeating: "a", count: 64) + ".example", .host),
    ])
  func refused(_ text: String, _ expected: WebOriginError) {
    #expect(throws: expected) { try WebOrigin(text) }
    #expect(!expected.reason.isEmpty && !expected.nextStep.isEmpty)
  }
}
