import FerryNetworking
import FerryTestSupport
import Testing

@testable import FerryMissions

@Suite("The answer to a request for a part", .hangLimit)
struct ResumeDecisionTests {
  /// Bytes 40 to 69 of a file of 100 bytes, the part before of version "a".
  private static let resumed = TransferAsk(
    bytes: 40..<70, size: 100, hasRange: true, validator: TransferValidator(kept: "\"a\""),
    checksChunks: false)
  /// The same for chunks proven by their hashes.
  private static let chunked = TransferAsk(
    bytes: 40..<70, size: 100, hasRange: true, validator: nil, checksChunks: true)
  private static let whole = TransferAsk(
    bytes: 0..<100, size: 100, hasRange: false, validator: nil, checksChunks: false)

  private func decide(
    _ status: Int, _ headers: TransportHeaders, _ ask: TransferAsk = Self.resumed
  ) -> ResumeDecision {
    ResumeDecision(AnswerHead(status: status, headers: headers), to: ask, now: 784_111_777)
  }

  private func way(_ decision: ResumeDecision) -> ChunkPlan.Way? {
    if case .change(let way, let error) = decision, error.kind == .wrongAnswer { way } else { nil }
  }

  private func refusal(_ decision: ResumeDecision) -> DownloadError.Kind? {
    if case .giveUp(let error) = decision { error.kind } else { nil }
  }

  @Test("a part is requested by range and strong version, without an encoding")
  func fields() {
    #expect(
      Self.resumed.headers == [
        "Accept-Encoding": "identity", "Range": "bytes=40-69", "If-Range": "\"a\"",
      ])
    #expect(Self.chunked.headers == ["Accept-Encoding": "identity", "Range": "bytes=40-69"])
    #expect(Self.whole.headers == ["Accept-Encoding": "identity"])
    var decoded = Self.whole
    decoded.isDecoded = true
    #expect(decoded.headers == [:])
  }

  @Test("a part is accepted if it is exactly the requested part of this version")
  func exactPart() {
    let headers: TransportHeaders = [
      "Content-Range": "bytes 40-69/100", "Content-Length": "30", "ETag": "\"a\"",
    ]
    #expect(decide(206, headers) == .take(40..<70))
    #expect(decide(206, headers, Self.chunked) == .take(40..<70))
  }

  @Test(
    "a length that no body has is refused",
    arguments: ["99999999999999999999", "9223372036854775808", "-30", "", "x", "30, 31", "30,"])
  func wrongLength(_ length: String) {
    let part: TransportHeaders = [
      "Content-Range": "bytes 40-69/100", "Content-Length": length, "ETag": "\"a\"",
    ]
    #expect(refusal(decide(206, part)) == .wrongAnswer)
    #expect(refusal(decide(200, ["Content-Length": length], Self.whole)) == .wrongAnswer)
  }

  @Test("equal lengths count once")
  func equalLengths() {
    var headers: TransportHeaders = ["Content-Length": "100, 100"]
    headers.add("Content-Length", " 100")
    #expect(decide(200, headers, Self.whole) == .take(0..<100))
    headers.add("Content-Length", "101")
    #expect(refusal(decide(200, headers, Self.whole)) == .wrongAnswer)
  }

  @Test("a part can be shorter than requested, from the same place on")
  func shorterPart() {
    let headers: TransportHeaders = ["Content-Range": "bytes 40-49/100", "ETag": "\"a\""]
    #expect(decide(206, headers) == .take(40..<50))
  }

  @Test(
    "a part without a place, or with a wrong or contradictory one, is never written",
    arguments: [
      [:], ["Content-Range": "bytes 41-69/100"], ["Content-Range": "bytes 0-29/100"],
      ["Content-Range": "bytes 40-70/100"], ["Content-Range": "bytes */100"],
      ["Content-Range": "bytes 40-69"], ["Content-Range": "bytes 40-69/100, bytes 0-9/100"],
      ["Content-Range": "bytes 40-69/100", "Content-Length": "31"],
      ["Content-Range": "bytes 40-69/100", "Content-Encoding": "gzip"],
      [
        "Content-Range": "bytes 40-69/100",
        "Content-Type": "Multipart/byteranges; boundary=x",
      ],
    ] as [TransportHeaders])
  func misplacedPart(_ fields: TransportHeaders) {
    var headers = fields
    headers.add("ETag", "\"a\"")
    #expect(way(decide(206, headers)) == .whole)
    #expect(way(decide(206, headers, Self.chunked)) == .whole)
  }

  @Test("a part needs the total size, unless hashes of chunks prove it")
  func unknownTotal() {
    let headers: TransportHeaders = ["Content-Range": "bytes 40-69/*", "ETag": "\"a\""]
    #expect(way(decide(206, headers)) == .whole)
    #expect(decide(206, headers, Self.chunked) == .take(40..<70))
  }

  @Test("a part of a file of another size is refused")
  func otherTotal() {
    let headers: TransportHeaders = ["Content-Range": "bytes 40-69/101", "ETag": "\"a\""]
    #expect(refusal(decide(206, headers)) == .wrongContent(chunk: nil))
    #expect(refusal(decide(206, headers, Self.chunked)) == .wrongContent(chunk: nil))
    #expect(refusal(decide(200, ["Content-Length": "99"])) == .wrongContent(chunk: nil))
    #expect(
      refusal(decide(416, ["Content-Range": "bytes */30"])) == .wrongContent(chunk: nil))
  }

  @Test(
    "a part of another or unknown version starts the file again",
    arguments: [["ETag": "\"b\""], ["ETag": "W/\"a\""], [:]] as [TransportHeaders])
  func otherVersion(_ fields: TransportHeaders) {
    var headers = fields
    headers.add("Content-Range", "bytes 40-69/100")
    guard case .startOver(let error) = decide(206, headers) else {
      Issue.record("two versions were spliced")
      return
    }
    #expect(error.kind == .changed)
    // Chunks are proven by their content, whatever the version is called.
    #expect(decide(206, headers, Self.chunked) == .take(40..<70))
  }

  @Test("the whole in place of a part starts the file again")
  func wholeInstead() {
    #expect(decide(200, ["Content-Length": "100"]) == .takeWhole)
    #expect(decide(200, ["Content-Length": "100"], Self.chunked) == .takeWhole)
    #expect(decide(200, [:]) == .takeWhole)
  }

  @Test("only the whole answers a request for the whole")
  func asked() {
    #expect(decide(200, ["Content-Length": "100"], Self.whole) == .take(0..<100))
    #expect(decide(200, [:], Self.whole) == .take(0..<100))
    let part: TransportHeaders = ["Content-Range": "bytes 0-99/100"]
    #expect(refusal(decide(206, part, Self.whole)) == .wrongAnswer)
    #expect(refusal(decide(416, [:], Self.whole)) == .wrongAnswer)
  }

  @Test("an unrequested encoding is requested once more, decoded by the transport")
  func encoded() {
    let headers: TransportHeaders = ["Content-Encoding": "gzip", "Content-Length": "55"]
    #expect(way(decide(200, headers, Self.whole)) == .decoded)
    #expect(way(decide(200, headers)) == .decoded)
    var decoded = Self.whole
    decoded.isDecoded = true
    #expect(decide(200, headers, decoded) == .take(0..<100))
    #expect(decide(200, ["Content-Encoding": "identity"], Self.whole) == .take(0..<100))
  }

  @Test("an unsatisfiable range is followed by a request for the whole")
  func unsatisfiable() {
    #expect(way(decide(416, ["Content-Range": "bytes */100"])) == .whole)
    #expect(way(decide(416, [:])) == .whole)
  }

  @Test(
    "an answer with any other status is not part of the file",
    arguments: [201, 203, 204, 300, 302, 304, 400, 401, 403, 404, 410, 412, 451, 501, 0])
  func refused(_ status: Int) {
    // With a page of just the right length.
    let decision = decide(status, ["Content-Length": "30", "Content-Type": "text/html"])
    #expect(refusal(decision) == .server(status))
  }

  @Test(
    "a temporary failure is retried after the time that the server names",
    arguments: [408, 425, 429, 500, 502, 503, 504])
  func later(_ status: Int) {
    func wish(_ headers: TransportHeaders) -> Duration? {
      guard case .tryAgain(let error, let wish) = decide(status, headers) else { return .zero }
      #expect(error.kind == .server(status))
      return wish
    }
    #expect(wish([:]) == nil)
    #expect(wish(["Retry-After": "17"]) == .seconds(17))
    #expect(wish(["Retry-After": "Sun, 06 Nov 1994 08:49:47 GMT"]) == .seconds(10))
  }
}
