import FerryTestSupport
import Foundation
import Testing

@testable import FerryHTTPServer

@Suite("Files as answers", .hangLimit)
struct FileResponseTests {
  static let bytes = ScratchFile.pattern(300_000)

  /// Sends requests to a server of one file, all on one connection.
  func answers(
    to requests: [(method: String, headers: [String: String])], of bytes: [UInt8] = Self.bytes
  ) async throws -> [RawClient.Response] {
    let file = try ScratchFile(bytes)
    let responses = Collector<[RawClient.Response]>()
    try await withServer(handler: file.handler()) { server in
      responses.add(
        try await onThread {
          let client = try RawClient(port: server.port)
          return try requests.map {
            try client.exchange($0.method, "/f", headers: $0.headers)
          }
        })
    }
    try await file.waitUntilClosed()
    return await responses.values(1)[0]
  }

  func answer(_ headers: [String: String], method: String = "GET") async throws
    -> RawClient.Response
  {
    // The response after it shows that the connection is still in order.
    let both = try await answers(to: [(method, headers), ("GET", [:])])
    #expect(both[1].body == Self.bytes)
    return both[0]
  }

  @Test("a whole file is sent with its size, its tag and its lifetime")
  func whole() async throws {
    let response = try await answer([:])
    #expect(response.status == 200)
    #expect(response.body == Self.bytes)
    #expect(response.headers["content-length"] == "300000")
    #expect(response.headers["content-type"] == "video/mp4")
    #expect(response.headers["etag"] == "\"v1\"")
    #expect(response.headers["accept-ranges"] == "bytes")
    #expect(response.headers["cache-control"] == "max-age=60, immutable")
    #expect(response.headers["transfer-encoding"] == nil)
  }

  @Test(
    "one range is sent as a single body",
    arguments: [
      ("bytes=0-0", 0..<1), ("bytes=1000-250000", 1000..<250_001),
      ("bytes=299999-", 299_999..<300_000), ("bytes=-4096", 295_904..<300_000),
      ("bytes=0-", 0..<300_000),
    ])
  func single(header: String, range: Range<Int>) async throws {
    let response = try await answer(["Range": header])
    #expect(response.status == 206)
    #expect(response.body == Array(Self.bytes[range]))
    #expect(response.headers["content-length"] == "\(range.count)")
    #expect(
      response.headers["content-range"]
        == "bytes \(range.lowerBound)-\(range.upperBound - 1)/300000")
    #expect(response.headers["content-type"] == "video/mp4")
  }

  @Test("several ranges are sent as parts, each with its place")
  func multiple() async throws {
    let response = try await answer(["Range": "bytes=-100000,0-99,1000-150000"])
    #expect(response.status == 206)
    #expect(response.headers["content-range"] == nil)
    #expect(response.headers["content-length"] == "\(response.body.count)")
    let parts = try Self.parts(of: response)
    #expect(parts.map(\.type) == ["video/mp4", "video/mp4", "video/mp4"])
    #expect(
      parts.map(\.range) == [
        "bytes 200000-299999/300000", "bytes 0-99/300000", "bytes 1000-150000/300000",
      ])
    #expect(parts[0].bytes == Array(Self.bytes[200_000...]))
    #expect(parts[1].bytes == Array(Self.bytes[..<100]))
    #expect(parts[2].bytes == Array(Self.bytes[1000...150_000]))
  }

  @Test("a range beyond the end is answered 416 with the size")
  func unsatisfiable() async throws {
    let response = try await answer(["Range": "bytes=300000-"])
    #expect(response.status == 416)
    #expect(response.headers["content-range"] == "bytes */300000")
    #expect(response.headers["cache-control"] == nil)
    #expect(response.headers["content-length"] == "0")
  }

  @Test("If-Range returns the range of the same file and the whole of another one")
  func ifRange() async throws {
    let hit = try await answer(["Range": "bytes=10-19", "If-Range": "\"v1\""])
    #expect(hit.status == 206)
    #expect(hit.body == Array(Self.bytes[10..<20]))
    let miss = try await answer(["Range": "bytes=10-19", "If-Range": "\"v0\""])
    #expect(miss.status == 200)
    #expect(miss.body == Self.bytes)
  }

  @Test("HEAD returns the size and no content, with a range as well")
  func head() async throws {
    for headers in [[:], ["Range": "bytes=0-9"], ["Range": "bytes=0-9,500-509"]] {
      let response = try await answer(headers, method: "HEAD")
      #expect(response.status == 200)
      #expect(response.headers["content-length"] == "300000")
      #expect(response.headers["content-type"] == "video/mp4")
      #expect(response.body.isEmpty)
    }
  }

  @Test("a reader that has the file gets 304, and no content")
  func notModified() async throws {
    for method in ["GET", "HEAD"] {
      let response = try await answer(["If-None-Match": "W/\"v1\""], method: method)
      #expect(response.status == 304)
      #expect(response.headers["etag"] == "\"v1\"")
      #expect(response.headers["cache-control"] == "max-age=60, immutable")
      // The size of the unsent bytes, never another one (RFC 9110 §8.6).
      #expect(response.headers["content-length"] == "300000")
    }
    let other = try await answer(["If-Match": "\"v0\""])
    #expect(other.status == 412)
    #expect(other.body.isEmpty)
  }

  @Test("an empty file is sent as a file")
  func empty() async throws {
    let requests: [(String, [String: String])] = [
      ("GET", [:]), ("HEAD", [:]), ("GET", ["Range": "bytes=-5"]),
      ("GET", ["Range": "bytes=0-"]), ("GET", [:]),
    ]
    let responses = try await answers(to: requests, of: [])
    #expect(responses.map(\.status) == [200, 200, 200, 416, 200])
    #expect(responses.allSatisfy { $0.headers["content-length"] == "0" })
  }

  @Test("a file is sent uncompressed to any client")
  func codings() async throws {
    let file = try ScratchFile([UInt8](repeating: 120, count: 100_000))
    let handler: HTTPHandler = { request in
      var response = await file.handler()(request)
      response.compressible = true
      return response
    }
    try await withServer(handler: handler) { server in
      let responses = try await onThread {
        let client = try RawClient(port: server.port)
        return try ["bytes=0-", "bytes=0-9,90000-"].map {
          try client.exchange(
            "GET", "/", headers: ["Accept-Encoding": "zstd, gzip", "Range": $0])
        }
      }
      #expect(responses[0].body.count == 100_000)
      #expect(responses.allSatisfy { $0.headers["content-encoding"] == nil })
      #expect(responses.allSatisfy { $0.headers["etag"] == "\"v1\"" })
    }
  }

  @Test("content in memory is answered by the same rules")
  func memory() async throws {
    let handler: HTTPHandler = { request in
      HTTPResponse(
        answering: request, with: .bytes(Self.bytes), tag: EntityTag(strong: "m"),
        mediaType: "text/plain")
    }
    try await withServer(handler: handler) { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        let one = try client.exchange("GET", "/", headers: ["Range": "bytes=5-9"])
        #expect(one.body == Array(Self.bytes[5..<10]))
        let two = try client.exchange("GET", "/", headers: ["Range": "bytes=0-9,-70000"])
        let parts = try Self.parts(of: two)
        #expect(parts.map(\.bytes) == [Array(Self.bytes[..<10]), Array(Self.bytes[230_000...])])
      }
    }
  }

  @Test("an exchange with a file is reported with the bytes that were sent")
  func reported() async throws {
    let file = try ScratchFile(Self.bytes)
    let exchanges = Collector<HTTPExchange>()
    let configuration = HTTPServer.Configuration(onComplete: { exchanges.add($0) })
    try await withServer(configuration, handler: file.handler()) { server in
      try await onThread {
        let client = try RawClient(port: server.port)
        _ = try client.exchange("GET", "/")
        _ = try client.exchange("GET", "/", headers: ["Range": "bytes=0-9"])
        _ = try client.exchange("HEAD", "/")
        _ = try client.exchange("GET", "/", headers: ["If-None-Match": "*"])
      }
      let reported = await exchanges.values(4)
      #expect(reported.map(\.responseBytes) == [300_000, 10, 0, 0])
      #expect(reported.allSatisfy { $0.isComplete })
    }
  }

  @Test("only regular files can be opened")
  func opening() throws {
    #expect(throws: ReadableFileError(code: ENOENT)) {
      try ReadableFile(path: "/nowhere/to/be/found")
    }
    #expect(throws: ReadableFileError(code: EINVAL)) { try ReadableFile(path: "/tmp") }
    #expect(throws: ReadableFileError(code: EINVAL)) { try ReadableFile(path: "/dev/null") }
    #expect(throws: ReadableFileError(code: EBADF)) { try ReadableFile(adopting: -1) }
    let file = try ScratchFile([1, 2, 3])
    #expect(try ReadableFile(path: file.path).size == 3)
    #expect(file.openDescriptors == 0)
  }

  struct Part: Equatable {
    var type: String?
    var range: String?
    var bytes: [UInt8]
  }

  /// Splits a multipart response by the boundary, like a client.
  static func parts(of response: RawClient.Response) throws -> [Part] {
    let type = try #require(response.headers["content-type"])
    let prefix = "multipart/byteranges; boundary="
    try #require(type.hasPrefix(prefix))
    let mark = Data("--\(type.dropFirst(prefix.count))".utf8)
    var rest = Data(response.body)
    var parts: [Part] = []
    try #require(rest.starts(with: mark))
    rest = rest.dropFirst(mark.count)
    while !rest.starts(with: Data("--\r\n".utf8)) {
      let end = try #require(rest.range(of: Data("\r\n".utf8) + mark))
      let part = rest[rest.startIndex..<end.lowerBound]
      let blank = try #require(part.range(of: Data("\r\n\r\n".utf8)))
      let head = String(decoding: part[..<blank.lowerBound], as: UTF8.self)
      let lines = head.components(separatedBy: "\r\n")
      func value(_ name: String) -> String? {
        lines.first { $0.hasPrefix(name + ": ") }.map { String($0.dropFirst(name.count + 2)) }
      }
      parts.append(
        Part(
          type: value("Content-Type"), range: value("Content-Range"),
          bytes: Array(part[blank.upperBound...])))
      rest = rest[end.upperBound...]
    }
    #expect(rest.count == 4)
    return parts
  }
}
