import FerryTestSupport
import Testing

@testable import FerryHTTPServer

@Suite("Request targets", .hangLimit)
struct RequestTargetTests {
  @Test(
    "a target is split into path, segments and query",
    arguments: [
      ("/", "/", [], [:]),
      ("/a", "/a", ["a"], [:]),
      ("/a/b%2Fc", "/a/b%2Fc", ["a", "b/c"], [:]),
      ("/a/", "/a/", ["a", ""], [:]),
      ("//a", "//a", ["", "a"], [:]),
      ("/%C3%A9%20+", "/%C3%A9%20+", ["é +"], [:]),
      ("/../x", "/../x", ["..", "x"], [:]),
      (
        "/a?x=1&y=a+b%26&z&X=2&&=e", "/a", ["a"],
        ["x": "1", "X": "2", "y": "a b&", "z": "", "": "e"]
      ),
      ("/a?", "/a", ["a"], [:]),
      ("/a?b=c=d?e", "/a", ["a"], ["b": "c=d?e"]),
      ("*", "*", [], [:]),
      ("http://host:80/a?b=c", "/a", ["a"], ["b": "c"]),
      ("HTTP://host", "/", [], [:]),
      ("https://host?x=1", "/", [], ["x": "1"]),
      ("/a/\u{301}b?\u{301}c=1", "/a/\u{301}b", ["a", "\u{301}b"], ["\u{301}c": "1"]),
      ("http://host/\u{301}a", "/\u{301}a", ["\u{301}a"], [:]),
    ] as [(String, String, [String], [String: String])])
  func wellFormed(
    target: String, path: String, segments: [String], query: [String: String]
  ) throws {
    let parsed = try RequestTarget(parsing: target)
    #expect(parsed.path == path)
    #expect(parsed.segments == segments)
    #expect(parsed.query == query)
  }

  @Test(
    "an invalid path, or one that is not UTF-8, is refused",
    arguments: [
      "", "a", "?x=1", "/%", "/%4", "/%zz", "/%ff", "/%c3", "/a?x=%", "/a?%ff=1", "ftp://h/",
      "/a\0", "/a%00b", "/a%0a", "/%1f", "/%7F", "/a b", "/a\tb", "/a\u{7f}", "/x?a b", "/x?\0",
      "/x?a=b%00", "/x?%00=b",
    ])
  func malformed(target: String) {
    #expect(throws: HTTPFailure.malformedTarget) { try RequestTarget(parsing: target) }
  }

  @Test(
    "a parameter that is repeated is refused, however it is written",
    arguments: ["/a?x=1&x=2", "/a?x=1&x=1", "/a?x&y&x=", "/a?x=1&%78=2", "/a?=&=", "http://h/?b&b"])
  func repeated(target: String) {
    #expect(throws: HTTPFailure.repeatedParameter) { try RequestTarget(parsing: target) }
  }
}
