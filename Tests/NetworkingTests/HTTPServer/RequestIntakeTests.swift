import FerryCompression
import FerryTestSupport
import Testing

@testable import FerryHTTPServer

@Suite("The intake of requests", .hangLimit)
struct RequestIntakeTests {
  let budget = MemoryBudget(limit: 8 << 20)

  func intake(
    _ headers: HTTPHeaders, target: String = "/a", version: String = "HTTP/1.1",
    limit: Int = 100, budget: MemoryBudget? = nil
  ) -> RequestIntake {
    RequestIntake(
      method: "POST", target: target, headers: headers, version: version, limit: limit,
      budget: budget ?? self.budget)
  }

  func hosted(_ fields: [(String, String)]) -> HTTPHeaders {
    HTTPHeaders(([("Host", "h")] + fields).map { .init(name: $0.0, value: $0.1) })
  }

  /// Returns the reason why a request is refused before the content is read.
  func refusal(_ intake: RequestIntake, limit: Int = 100) -> HTTPFailure? {
    var intake = intake
    return intake.framingFailure ?? intake.admit(limit: limit)
  }

  func request(
    _ headers: HTTPHeaders, _ pieces: [UInt8]..., limit: Int = 100, budget: MemoryBudget? = nil
  ) throws -> HTTPRequest {
    var intake = intake(
      hosted(headers.fields.map { ($0.name, $0.value) }), limit: limit, budget: budget)
    if let failure = intake.framingFailure { throw failure }
    if let failure = intake.admit(limit: limit) { throw failure }
    for piece in pieces {
      if let failure = piece.withUnsafeBytes({ intake.receive($0) }) { throw failure }
    }
    return try intake.request(remoteAddress: "::1")
  }

  @Test("a declared length is compared with the limit before any content arrives")
  func declaredLength() {
    let allowed = intake(hosted([("Content-Length", "100")]))
    #expect(refusal(allowed) == nil)
    #expect(refusal(allowed, limit: 99) == .contentTooLarge(limit: 99))
    for length in ["101", "99999999999999999999999"] {
      let refused = intake(hosted([("Content-Length", length)]))
      #expect(refusal(refused) == .contentTooLarge(limit: 100))
    }
  }

  @Test("announced content uses no memory, and received content does until its request ends")
  func memory() throws {
    let mebibyte = hosted([("Content-Length", String(1 << 20))])
    var taken = (0..<4).map { _ in intake(mebibyte, limit: 1 << 20) }
    for index in taken.indices { #expect(taken[index].admit(limit: 1 << 20) == nil) }
    #expect(budget.used == 0)
    let whole = [UInt8](repeating: 0, count: 1 << 20)
    for index in 0..<3 { #expect(receive(whole, &taken[index]) == nil) }
    #expect(budget.used == 3 << 20)
    // The rest is left to small contents and to work.
    #expect(receive(whole, &taken[3]) == .outOfMemory)
    taken[0] = intake([:])
    taken[3] = intake(mebibyte, limit: 1 << 20)
    #expect(taken[3].admit(limit: 1 << 20) == nil)
    #expect(receive(whole, &taken[3]) == nil)
    #expect(budget.used == 3 << 20)
    taken = []
    #expect(budget.used == 0)
  }

  @Test("small contents have memory reserved beside large ones")
  func smallContents() {
    let large = hosted([("Transfer-Encoding", "chunked")])
    let piece = [UInt8](repeating: 0, count: MemoryBudget.step)
    var taken: [RequestIntake] = []
    var failure: HTTPFailure?
    while failure == nil, taken.count < 100 {
      var next = intake(large, limit: 1 << 20)
      for _ in 0..<2 where failure == nil { failure = receive(piece, &next) }
      taken.append(next)
    }
    #expect(failure == .outOfMemory)
    var small = intake(hosted([("Content-Length", "100")]))
    #expect(receive([UInt8](repeating: 0, count: 100), &small) == nil)
  }

  @Test("one sender can use a quarter of the memory, with any number of slow requests")
  func account() {
    let mebibyte = hosted([("Content-Length", String(1 << 20))])
    let half = [UInt8](repeating: 0, count: 512 << 10)
    let piece = [UInt8](repeating: 0, count: 256 << 10)
    var taken = (0..<5).map { _ in intake(mebibyte, limit: 1 << 20) }
    let refused = taken.indices.map { index in
      #expect(taken[index].admit(limit: 1 << 20, account: "mallory") == nil)
      return receive(half, &taken[index])
    }
    #expect(refused.prefix(3) == [nil, nil, nil])
    #expect(refused.last == .outOfMemory)
    var other = intake(mebibyte, limit: 1 << 20)
    #expect(other.admit(limit: 1 << 20, account: "alice") == nil)
    for _ in 0..<4 { #expect(receive(piece, &other) == nil) }
    taken = []
    var again = intake(mebibyte, limit: 1 << 20)
    #expect(again.admit(limit: 1 << 20, account: "mallory") == nil)
    for _ in 0..<4 { #expect(receive(piece, &again) == nil) }
  }

  func receive(_ piece: [UInt8], _ intake: inout RequestIntake) -> HTTPFailure? {
    piece.withUnsafeBytes { intake.receive($0) }
  }

  @Test("decoded content counts with its encoded and its decoded size")
  func decodedMemory() throws {
    let content = [UInt8](repeating: 7, count: 900_000)
    let coded = try ContentCoding.gzip.compress(content)
    var intake = intake(
      hosted([("Content-Encoding", "gzip"), ("Content-Length", String(coded.count))]),
      limit: 1 << 20)
    #expect(intake.admit(limit: 1 << 20) == nil)
    #expect(coded.withUnsafeBytes { intake.receive($0) } == nil)
    let request = try intake.request(remoteAddress: "")
    #expect(request.body == content)
    #expect(budget.used == content.count + coded.count)
  }

  @Test(
    "content within the limit is accepted however well it compresses", arguments: ["zstd", "gzip"])
  func expansion(name: String) throws {
    let content = [UInt8](repeating: 7, count: 8 << 20)
    let coded = try #require(ContentCoding(token: name)).compress(content)
    #expect(coded.count < 16_000)
    let wide = MemoryBudget(limit: 32 << 20)
    let request = try request(["Content-Encoding": name], coded, limit: 8 << 20, budget: wide)
    #expect(request.body == content)
  }

  @Test("a bomb ends at the limit, and at the budget for memory")
  func bombWithinBudget() throws {
    let coded = try ContentCoding.zstd.compress([UInt8](repeating: 7, count: 64 << 20))
    let wide = MemoryBudget(limit: 32 << 20)
    #expect(throws: HTTPFailure.contentTooLarge(limit: 8 << 20)) {
      try request(["Content-Encoding": "zstd"], coded, limit: 8 << 20, budget: wide)
    }
    #expect(wide.used == 0)
    #expect(throws: HTTPFailure.outOfMemory) {
      try request(["Content-Encoding": "zstd"], coded, limit: 8 << 20)
    }
    #expect(budget.used == 0)
  }

  @Test(
    "a length that is not a whole number is refused",
    arguments: ["-1", "+5", "0x5", "5, 5", "", "5 5", "٥", "1e3", "3x"])
  func malformedLength(text: String) {
    #expect(refusal(intake(hosted([("Content-Length", text)]))) == .ambiguousLength)
  }

  @Test("a request names its host once, and its target names no other")
  func host() {
    #expect(refusal(intake([:])) == .malformedHost)
    #expect(refusal(intake([:], version: "HTTP/1.0")) == nil)
    #expect(refusal(intake(hosted([("HOST", "h")]))) == .malformedHost)
    for host in ["a b", "a, b", "a/b", "user@a", "a?", "\u{e9}"] {
      #expect(refusal(intake(["Host": host])) == .malformedHost)
    }
    for (target, host, fits) in [
      ("http://a/x", "a", true), ("http://A:80/x", "a", true), ("http://a/x", "a:80", true),
      ("http://a:81/x", "a", false), ("http://b/x", "a", false), ("http://user@a/x", "a", false),
      ("http:///x", "a", false), ("/x", "a", true),
    ] {
      #expect((refusal(intake(["Host": host], target: target)) == nil) == fits, "\(target)")
    }
  }

  @Test("a header's name is a token, and its value has no control characters")
  func headerBytes() {
    for name in ["Content-Length ", "X Y", "", "X\u{0}", "X\u{e9}", "(x)"] {
      #expect(refusal(intake(hosted([(name, "5")]))) == .malformedHeader)
    }
    #expect(refusal(intake(hosted([("X", "a\u{1}b")]))) == .malformedHeader)
    #expect(refusal(intake(hosted([("X", "a\tb é")]))) == nil)
  }

  @Test(
    "an ambiguous length is refused",
    arguments: [
      [("Content-Length", "1"), ("Content-Length", "2")],
      [("content-length", "1"), ("transfer-encoding", "chunked")],
      [("Transfer-Encoding", "gzip, chunked")],
      [("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")],
    ])
  func ambiguousLength(fields: [(String, String)]) {
    #expect(refusal(intake(hosted(fields))) == .ambiguousLength)
  }

  @Test("HTTP/1.0 has no chunks")
  func oldChunks() {
    let old = intake(hosted([("Transfer-Encoding", "chunked")]), version: "HTTP/1.0")
    #expect(refusal(old) == .ambiguousLength)
  }

  @Test("content of unknown length is stopped at the limit")
  func undeclaredLength() throws {
    let fifty = [UInt8](repeating: 1, count: 50)
    #expect(try request(["Transfer-Encoding": "Chunked"], fifty, fifty).body == fifty + fifty)
    #expect(throws: HTTPFailure.contentTooLarge(limit: 100)) {
      try request(["Transfer-Encoding": "chunked"], fifty, fifty, [1])
    }
  }

  @Test("a content coding is decoded", arguments: ["zstd", "GZIP", "x-gzip", " gzip , identity"])
  func codings(name: String) throws {
    let content = Array("ferry ferry ferry".utf8)
    let coding: ContentCoding = name == "zstd" ? .zstd : .gzip
    let coded = try coding.compress(content)
    let request = try request(["Content-Encoding": name], coded)
    #expect(request.body == content)
    #expect(request.bodyWireBytes == coded.count)
  }

  @Test("the limit also applies after decoding")
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

  @Test("a coding without content is accepted")
  func emptyContent() throws {
    #expect(try request(["Content-Encoding": "gzip"]).body == [])
  }
}
