import Compression
import TestSupport
import Testing

@testable import HTTPServer

@Suite("The intake of requests", .hangLimit)
struct RequestIntakeTests {
  func intake(_ headers: HTTPHeaders, target: String = "/a", limit: Int = 100) -> RequestIntake {
    RequestIntake(method: "POST", target: target, headers: headers, limit: limit)
  }

  func request(_ headers: HTTPHeaders, _ pieces: [UInt8]..., limit: Int = 100) throws -> HTTPRequest
  {
    var intake = intake(headers, limit: limit)
    if let failure = intake.refusalBeforeContent() { throw failure }
    for piece in pieces {
      if let failure = piece.withUnsafeBytes({ intake.receive($0) }) { throw failure }
    }
    return try intake.request(remoteAddress: "::1")
  }

  @Test("a declared length is held against the limit before any content")
  func declaredLength() {
    var allowed = intake(["Content-Length": "100"])
    #expect(allowed.refusalBeforeContent() == nil)
    for length in ["101", "99999999999999999999999"] {
      var refused = intake(["Content-Length": length])
      #expect(refused.refusalBeforeContent() == .contentTooLarge(limit: 100))
    }
  }

  @Test(
    "a length that can be read in two ways is refused",
    arguments: [
      [("Content-Length", "1"), ("Content-Length", "2")],
      [("content-length", "1"), ("transfer-encoding", "chunked")],
      [("Transfer-Encoding", "gzip, chunked")],
      [("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")],
    ])
  func ambiguousLength(fields: [(String, String)]) {
    var intake = intake(HTTPHeaders(fields.map { .init(name: $0.0, value: $0.1) }))
    #expect(intake.refusalBeforeContent() == .ambiguousLength)
  }

  @Test("content of unknown length is stopped at the limit")
  func undeclaredLength() throws {
    let fifty = [UInt8](repeating: 1, count: 50)
    #expect(try request(["Transfer-Encoding": "Chunked"], fifty, fifty).body == fifty + fifty)
    #expect(throws: HTTPFailure.contentTooLarge(limit: 100)) {
      try request(["Transfer-Encoding": "chunked"], fifty, fifty, [1])
    }
  }

  @Test("a content coding is undone", arguments: ["zstd", "GZIP", "x-gzip", " gzip , identity"])
  func codings(name: String) throws {
    let content = Array("ferry ferry ferry".utf8)
    let coding: ContentCoding = name == "zstd" ? .zstd : .gzip
    let coded = try coding.compress(content)
    let request = try request(["Content-Encoding": name], coded)
    #expect(request.body == content)
    #expect(request.bodyWireBytes == coded.count)
  }

  @Test("the limit holds after decoding as well")
  func bomb() throws {
    let coded = try ContentCoding.zstd.compress([UInt8](repeating: 0, count: 101))
    #expect(throws: HTTPFailure.contentTooLarge(limit: 100)) {
      try request(["Content-Encoding": "zstd"], coded)
    }
  }

  @Test("damaged content is refused")
  func damaged() {
    #expect(throws: HTTPFailure.malformedContent) {
      try request(["Content-Encoding": "gzip"], Array("not gzip".utf8))
    }
  }

  @Test("an unknown or stacked coding is refused by name", arguments: ["br", "gzip, zstd"])
  func unknownCoding(name: String) {
    #expect(throws: HTTPFailure.unsupportedCoding(name)) {
      try request(["Content-Encoding": name], [1, 2, 3])
    }
  }

  @Test("a coding without content is no failure")
  func emptyContent() throws {
    #expect(try request(["Content-Encoding": "gzip"]).body == [])
  }
}
