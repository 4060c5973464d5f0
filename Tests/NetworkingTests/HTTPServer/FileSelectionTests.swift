import FerryTestSupport
import Testing

@testable import FerryHTTPServer

@Suite("Conditions and ranges of a file", .hangLimit)
struct FileSelectionTests {
  static let representation = Representation(
    size: 1000, tag: EntityTag(strong: "v1"), mediaType: "video/mp4",
    cacheControl: "max-age=60, immutable")

  func selection(_ headers: HTTPHeaders, method: String = "GET") -> FileSelection {
    FileSelection(
      of: Self.representation, for: HTTPRequest(method: method, path: "/", headers: headers))
  }

  @Test("without conditions a file is sent whole, in one part or in several")
  func unconditional() {
    #expect(selection([:]) == .whole)
    #expect(selection(["Range": "bytes=0-9"]) == .partial(0..<10))
    #expect(
      selection(["Range": "bytes=0-9,-10"])
        == .multipart([0..<10, 990..<1000], boundary: "ferry-part-v1"))
    #expect(selection(["Range": "bytes=0-9,10-19"]) == .partial(0..<20))
    #expect(selection(["Range": "bytes=1000-"]) == .unsatisfiable)
    #expect(selection(["Range": "bytes=9-0"]) == .whole)
    #expect(selection(["Range": "bytes=0-9", "range": "bytes=20-29"]) == .whole)
  }

  @Test("ranges are for GET only", arguments: ["HEAD", "POST", "get"])
  func methods(method: String) {
    #expect(selection(["Range": "bytes=0-9"], method: method) == .whole)
    #expect(selection(["Range": "bytes=1000-"], method: method) == .whole)
  }

  @Test("If-Range allows a range only for exactly these bytes")
  func ifRange() {
    let range = "bytes=5-9"
    #expect(selection(["Range": range, "If-Range": "\"v1\""]) == .partial(5..<10))
    let others = [
      "\"v2\"", "W/\"v1\"", "v1", "\"v1\", \"v2\"", "*", "", "Sat, 21 Nov 2026 10:00:00 GMT",
    ]
    for other in others {
      #expect(selection(["Range": range, "If-Range": other]) == .whole, "\(other)")
    }
    // An unsatisfiable range is no error in a changed file.
    #expect(selection(["Range": "bytes=1000-", "If-Range": "\"v2\""]) == .whole)
    #expect(selection(["Range": "bytes=1000-", "If-Range": "\"v1\""]) == .unsatisfiable)
    #expect(selection(["If-Range": "\"v2\""]) == .whole)
  }

  @Test(
    "If-None-Match answers 304 to readers that have the file",
    arguments: ["\"v1\"", "W/\"v1\"", "\"a\", \"v1\"", "\"a,b\",W/\"v1\"", "*"])
  func ifNoneMatch(list: String) {
    #expect(selection(["If-None-Match": list]) == .notModified)
    #expect(selection(["If-None-Match": list], method: "HEAD") == .notModified)
    #expect(selection(["If-None-Match": list], method: "PUT") == .preconditionFailed)
    #expect(selection(["If-None-Match": list, "Range": "bytes=0-9"]) == .notModified)
  }

  @Test("If-None-Match with other tags changes nothing", arguments: ["\"v2\"", "v1", "", "\"v1"])
  func ifNoneMatchMisses(list: String) {
    #expect(selection(["If-None-Match": list]) == .whole)
    #expect(selection(["If-None-Match": list, "Range": "bytes=0-9"]) == .partial(0..<10))
  }

  @Test("If-Match answers 412 unless it names exactly these bytes")
  func ifMatch() {
    for list in ["\"v1\"", "\"v2\" , \"v1\"", "*", " * "] {
      #expect(selection(["If-Match": list]) == .whole, "\(list)")
    }
    for list in ["\"v2\"", "W/\"v1\"", "v1", "", "\"v2\" \"v1\""] {
      #expect(selection(["If-Match": list]) == .preconditionFailed, "\(list)")
    }
  }

  @Test("If-Match is checked before If-None-Match, and both before ranges")
  func precedence() {
    let range: HTTPHeaders.Field = .init(name: "Range", value: "bytes=1000-")
    var headers = HTTPHeaders([range])
    headers["If-None-Match"] = "\"v1\""
    #expect(selection(headers) == .notModified)
    headers["If-Match"] = "\"v2\""
    #expect(selection(headers) == .preconditionFailed)
    headers["If-Match"] = "\"v1\""
    headers["If-None-Match"] = "\"v2\""
    #expect(selection(headers) == .unsatisfiable)
    // A file without a date of change has no result for these.
    let dated: HTTPHeaders = [
      "If-Modified-Since": "Sat, 21 Nov 2026 10:00:00 GMT",
      "If-Unmodified-Since": "Sat, 21 Nov 1998 10:00:00 GMT",
    ]
    #expect(selection(dated) == .whole)
  }

  @Test("each answer has its headers")
  func headers() {
    let representation = Self.representation
    let common: [(String, String)] = [("Accept-Ranges", "bytes"), ("ETag", "\"v1\"")]
    let cached = [("Cache-Control", "max-age=60, immutable")]
    let typed = [("Content-Type", "video/mp4")]
    let table: [(FileSelection, Int, [(String, String)])] = [
      (.whole, 200, common + typed + cached),
      (.partial(0..<10), 206, common + typed + [("Content-Range", "bytes 0-9/1000")] + cached),
      (
        .multipart([0..<1, 5..<6], boundary: "b"), 206,
        common + [("Content-Type", "multipart/byteranges; boundary=b")] + cached
      ),
      (.notModified, 304, common + cached),
      (.unsatisfiable, 416, common + [("Content-Range", "bytes */1000")]),
      (.preconditionFailed, 412, common),
    ]
    for (selection, status, fields) in table {
      #expect(selection.status == status)
      let expected = HTTPHeaders(fields.map { .init(name: $0.0, value: $0.1) })
      #expect(selection.headers(of: representation) == expected)
    }
  }

  @Test("a media type that would break a header is not repeated")
  func mediaTypes() {
    for type in ["", "a/b\r\nX-Evil: 1", "a/\u{0}b"] {
      let representation = Representation(
        size: 1, tag: EntityTag(strong: "v"), mediaType: type)
      #expect(representation.mediaType == "application/octet-stream")
    }
  }

  @Test("a boundary consists of the tag's letters and digits, and its length is bounded")
  func boundaries() {
    func boundary(_ tag: String) -> String {
      Representation(size: 1, tag: EntityTag(strong: tag), mediaType: "a/b").boundary
    }
    #expect(boundary("sha256:0aZ9/+=;") == "ferry-part-sha2560aZ9")
    #expect(boundary(String(repeating: "f", count: 500)).utf8.count <= 70)
    #expect(boundary("") == "ferry-part-")
  }

  @Test("tags are parsed by the grammar")
  func tags() {
    #expect(EntityTag(header: " \"a\"\t") == EntityTag(strong: "a"))
    #expect(EntityTag(header: "\"\"")?.opaque == "")
    #expect(EntityTag(header: "W/\"a b\"") == nil)
    #expect(EntityTag(header: "w/\"a\"") == nil)
    #expect(EntityTag(header: "W/\"ä,!\"")?.description == "W/\"ä,!\"")
    #expect(EntityTag.list("\"a\",, \"b\" ,W/\"c\" x").map(\.opaque) == ["a", "b", "c"])
    #expect(EntityTag.list("\"a\" \"b\"").map(\.opaque) == ["a"])
  }
}
