import FerryTestSupport
import Foundation
import Testing

@testable import FerryHTTPServer

/// Malformed requests, to each of which a server responds once.
@Suite("Malformed requests", .hangLimit)
struct MalformedRequestTests {
  struct Case: CustomTestStringConvertible, Sendable {
    let name: String
    let bytes: [UInt8]
    var allowed: Set<Int> = [400]

    var testDescription: String { name }

    init(_ name: String, _ text: String, allowed: Set<Int> = [400]) {
      self.name = name
      bytes = Array(text.utf8)
      self.allowed = allowed
    }
  }

  static func post(_ headers: String, _ content: String = "") -> String {
    "POST /a HTTP/1.1\r\nHost: t\r\n\(headers)\r\n\(content)"
  }

  /// A server would serve it as a separate request if it missed the length before it.
  static let hidden = "GET /hidden HTTP/1.1\r\nHost: t\r\n\r\n"

  static let cases: [Case] = [
    Case("no Host", "GET / HTTP/1.1\r\n\r\n"),
    Case("no Host but content", "POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\na"),
    Case("two Hosts", "GET / HTTP/1.1\r\nHost: t\r\nHost: u\r\n\r\n"),
    Case("the same Host twice", "GET / HTTP/1.1\r\nHost: t\r\nHost: t\r\n\r\n"),
    Case("a parameter twice", "GET /a?limit=1&limit=2 HTTP/1.1\r\nHost: t\r\n\r\n"),
    Case("two tokens", post("Authorization: Bearer a\r\nAuthorization: Bearer b\r\n")),
    Case("the same token twice", post("authorization: Bearer a\r\nAUTHORIZATION: Bearer a\r\n")),
    Case("two types", post("Content-Type: a/b\r\nContent-Type: c/d\r\n")),
    Case(
      "two places of content", post("Content-Range: bytes 0-0/1\r\nContent-Range: bytes 0-0/2\r\n")),
    Case("two ranges in two lines", post("Range: bytes=0-1\r\nRange: bytes=2-3\r\n")),
    Case("two origins", post("Origin: https://a\r\nOrigin: https://b\r\n")),
    Case("two places of a stream", post("Last-Event-ID: 1\r\nLast-Event-ID: 2\r\n")),
    Case(
      "two codings", post("Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n"), allowed: [415]),
    Case(
      "lists in several lines",
      post("Accept-Encoding: gzip\r\nAccept-Encoding: zstd\r\nContent-Length: 0\r\n"),
      allowed: [200]),
    Case("a length of -1", post("Content-Length: -1\r\n")),
    Case("a length of +5", post("Content-Length: +5\r\n", "abcde")),
    Case("a length of 0x5", post("Content-Length: 0x5\r\n", "abcde")),
    Case("a length of 5, 5", post("Content-Length: 5, 5\r\n", "abcde")),
    Case("a length of nothing", post("Content-Length:\r\n")),
    Case(
      "a length beyond all numbers", post("Content-Length: 99999999999999999999999\r\n"),
      allowed: [413]),
    Case("a length with a space before the colon", post("Content-Length : 5\r\n", "abcde")),
    Case("a length on a folded line", post("Content-Length:\r\n \(hidden.utf8.count)\r\n", hidden)),
    Case(
      "a length that is continued", post("Content-Length: 0\r\n\t\(hidden.utf8.count)\r\n", hidden)),
    Case("a length after a NUL", post("Content-Length: 0\0\(hidden.utf8.count)\r\n", hidden)),
    Case(
      "a coding that ends with a NUL",
      post("Transfer-Encoding: chunked\0x\r\n", "0\r\n\r\n\(hidden)")),
    Case("a folded line of another header", post("X: a\r\n b\r\n")),
    Case("a NUL in the authorization", post("Authorization: Bearer a\0b\r\n")),
    Case("a line that ends with LF alone", post("X: a\n")),
    Case("a NUL in the path", "GET /a\0b HTTP/1.1\r\nHost: t\r\n\r\n"),
    Case("a NUL at the path's end", "GET /a\0 HTTP/1.1\r\nHost: t\r\n\r\n"),
    Case("an encoded NUL in the path", "GET /a%00b HTTP/1.1\r\nHost: t\r\n\r\n"),
    Case("a control character in the path", "GET /a\u{1}b HTTP/1.1\r\nHost: t\r\n\r\n"),
    Case("a space in the path", "GET /a b HTTP/1.1\r\nHost: t\r\n\r\n"),
    Case("two spaces before the version", "GET /a  HTTP/1.1\r\nHost: t\r\n\r\n"),
    Case("a target of another authority", "GET http://evil/a HTTP/1.1\r\nHost: t\r\n\r\n"),
    Case(
      "a chunk extension of 100 kB",
      post("Transfer-Encoding: chunked\r\n", "5;" + String(repeating: "x", count: 100_000)),
      allowed: [400, 431]),
    Case(
      "a chunk extension of 100 kB after a chunk",
      post(
        "Transfer-Encoding: chunked\r\n",
        "3\r\nabc\r\n5;" + String(repeating: "x", count: 100_000)), allowed: [400, 431]),
    Case(
      "a chunk extension of 100 kB beneath large headers",
      post(
        "X: \(String(repeating: "y", count: 10_000))\r\nTransfer-Encoding: chunked\r\n",
        "5;" + String(repeating: "x", count: 100_000)), allowed: [400, 431]),
    Case("a chunk of no size", post("Transfer-Encoding: chunked\r\n", ";x\r\n")),
    Case("a chunk of another size", post("Transfer-Encoding: chunked\r\n", "xyz\r\n")),
    Case(
      "a chunk beyond all numbers",
      post("Transfer-Encoding: chunked\r\n", "fffffffffffffffffffffff\r\n"), allowed: [413]),
    Case(
      "cookies beyond the memory",
      post("Cookie: \(String(repeating: "a=b; ", count: 4_000))\r\n"), allowed: [200, 400, 431]),
  ]

  @Test(
    "a malformed request gets one answer and no server error, and the next one is served",
    arguments: cases)
  func once(row: Case) async throws {
    try await withServer(
      HTTPServer.Configuration(bodyLimit: 64 << 10).patient, handler: describe
    ) { server in
      let answers = try await onThread {
        try RawClient(port: server.port).everything(after: row.bytes)
      }
      #expect(answers.count == 1, "\(answers)")
      for status in answers { #expect(row.allowed.contains(status)) }
      let next = try await onThread { try RawClient(port: server.port).exchange("GET", "/next") }
      #expect(next.text == "GET /next 0")
    }
  }

  @Test("a slow malformed request gets one answer as well, and does not affect its neighbours")
  func inPieces() async throws {
    try await withServer(handler: describe) { server in
      try await onThread {
        // Their headers, or their chunks, are incomplete on both threads of the server.
        let neighbours = try (0..<4).map { _ in try RawClient(port: server.port) }
        for neighbour in neighbours { try neighbour.send("POST /n HTTP/1.1\r\nHost: t\r\nTr") }
        let chunked = try (0..<4).map { _ in try RawClient(port: server.port) }
        for client in chunked {
          try client.send(Self.post("Transfer-Encoding: chunked\r\n", "3\r\nab"))
        }
        for text in [
          Self.post("Content-Length: -1\r\n"), "GET / HTTP/1.1\r\n\r\n",
          Self.post("Transfer-Encoding: chunked\r\n", "5;" + String(repeating: "x", count: 50_000)),
        ] {
          let client = try RawClient(port: server.port)
          try client.send(String(text.prefix(20)))
          #expect(try client.everything(after: Array(text.dropFirst(20).utf8)).count == 1)
        }
        for neighbour in neighbours {
          try neighbour.send("ansfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n")
          #expect(try neighbour.response().text == "POST /n 1")
        }
        for client in chunked {
          try client.send("c\r\n0\r\n\r\n")
          #expect(try client.response().text == "POST /a 3")
        }
      }
    }
  }

  @Test("random input gets at most one answer, never a 5xx, and the server stays up")
  func fuzz() async throws {
    let pieces: [[UInt8]] =
      [
        "GET ", "POST ", "HEAD ", "get ", " ", "/", "/a", "*", "http://t/a", "http://u/", "%00",
        "%6D", "?x=1", " HTTP/1.1", " HTTP/1.0", " HTTP/2.0", " HTTP/9", "\r\n", "\n", "\r", "\0",
        "Host: t\r\n", "Host: u\r\n", "Host:\r\n", "Content-Length: 3\r\n",
        "Content-Length: -1\r\n", "Content-Length: 3,3\r\n", "Content-Length: 0x3\r\n",
        "Content-Length : 3\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n",
        "Expect: 100-continue\r\n", "Connection: close\r\n", "Connection: keep-alive\r\n",
        "Cookie: a=b\r\n", "X: \u{1}\r\n", " folded\r\n", "No colon\r\n", ": empty\r\n",
        "abc", "3\r\nabc\r\n", "0\r\n\r\n", "fffffffffffffffff\r\n", "3;x=y\r\n", "\r\n\r\n",
        String(repeating: "z", count: 5_000), String(repeating: "Y: z\r\n", count: 500),
      ].map { Array($0.utf8) } + [[0xFF, 0xFE, 0x80]]
    // Half a request is waited for; the shorter, the sooner the round is over.
    var configuration = HTTPServer.Configuration(bodyLimit: 64 << 10, idleTimeout: .seconds(1))
    configuration.pace = TransferPace(headers: .seconds(1), grace: .seconds(1))
    try await withServer(configuration, handler: describe) { server in
      try await onThread {
        var random = SplitMix(state: 20_261_122)
        for round in 0..<400 {
          var bytes: [UInt8] =
            round % 4 == 0 ? [] : Array("POST /a HTTP/1.1\r\nHost: t\r\n".utf8)
          for _ in 0..<Int(random.next() % 12 + 1) {
            bytes += pieces[Int(random.next() % UInt64(pieces.count))]
          }
          let answers = try RawClient(port: server.port).everything(after: bytes)
          #expect(answers.allSatisfy { $0 < 500 || $0 == 505 }, "round \(round): \(answers)")
          let requests = Self.heads(in: bytes)
          // One for each, and one for the remaining bytes.
          #expect(answers.count <= requests + 1, "round \(round): \(answers)")
        }
        // The server leaves a client that gets no turn for a second; then the next one asks.
        var last: RawClient.Response?
        try block(until: "an answer") {
          do {
            last = try RawClient(port: server.port).exchange("GET", "/still-here")
          } catch RawClientError.closed {
            return false
          } catch RawClientError.reset {
            return false
          }
          return last?.status == 200
        }
        #expect(last?.text == "GET /still-here 0")
      }
    }
  }

  /// Returns how many requests the bytes may be read as, at most.
  static func heads(in bytes: [UInt8]) -> Int {
    String(decoding: bytes, as: UTF8.self).components(separatedBy: "HTTP/").count - 1
  }
}

/// A small seeded generator (Steele, Lea, Flood 2014).
struct SplitMix {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }
}
