import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

@Suite("Pages of other origins", .hangLimit)
struct CrossOriginRuleTests {
  private static let origin = "https://app.example"
  private static let rule: CrossOriginRule = {
    let origins = [origin, "http://127.0.0.1:8000"].compactMap { try? WebOrigin($0) }
    return CrossOriginRule(origins)
  }()

  private func preflight(
    _ origin: String?, _ method: String? = "POST", _ verb: String = "OPTIONS"
  ) -> HTTPRequest {
    var headers = HTTPHeaders()
    headers["Origin"] = origin
    headers["Access-Control-Request-Method"] = method
    return HTTPRequest(method: verb, path: "/v1/spaces/notes/packets", headers: headers)
  }

  @Test(
    "only a declared origin is allowed, byte for byte",
    arguments: [
      ("https://app.example", true), ("http://127.0.0.1:8000", true),
      ("https://APP.example", false), ("http://app.example", false),
      ("https://app.example:443", false), ("https://app.example/", false),
      ("https://app.example.evil.example", false), ("https://evil.example", false),
      ("http://127.0.0.1:8001", false), ("null", false), ("", false), ("*", false),
      ("https://app.example https://evil.example", false), ("https://app.exaмple", false),
    ])
  func origins(_ origin: String, _ isAllowed: Bool) {
    let answer = Self.rule.amend(HTTPResponse(status: 200), for: ["Origin": origin])
    #expect(answer.headers["Access-Control-Allow-Origin"] == (isAllowed ? origin : nil))
    #expect(answer.headers["Vary"] == "Origin")
    #expect(answer.headers["Access-Control-Allow-Credentials"] == nil)
    let none = CrossOriginRule.none.amend(HTTPResponse(status: 200), for: ["Origin": origin])
    #expect(none.headers == [:], "without a declared origin nothing changes")
  }

  @Test("a request with two origins, or with none, is not of a declared origin")
  func unclear() {
    var two = HTTPHeaders()
    for _ in 0..<2 { two.append("Origin", Self.origin) }
    for headers in [two, [:]] {
      let answer = Self.rule.amend(HTTPResponse(status: 200), for: headers)
      #expect(answer.headers["Access-Control-Allow-Origin"] == nil)
      #expect(answer.headers["Vary"] == "Origin")
    }
  }

  @Test(
    "an answer keeps the headers by which it varies",
    arguments: [
      (nil, "Origin"), ("Accept-Encoding", "Accept-Encoding, Origin"), ("*", "*"),
    ] as [(String?, String)])
  func varying(_ former: String?, _ expected: String) {
    var answer = HTTPResponse(status: 200)
    answer.headers["Vary"] = former
    #expect(Self.rule.amend(answer, for: [:]).headers["Vary"] == expected)
  }

  @Test("a preflight names the methods of its route, and the browser may keep it for two hours")
  func preflights() throws {
    for route in Route.allCases where route != .unknown {
      let answer = try #require(try Self.rule.preflight(preflight(Self.origin), route))
      #expect(answer.status == 204)
      #expect(answer.headers["Access-Control-Allow-Methods"] == route.allow)
      #expect(answer.headers["Access-Control-Max-Age"] == "7200")
      #expect(answer.headers["Access-Control-Allow-Headers"]?.contains("*") == false)
    }
    #expect(try Self.rule.preflight(preflight(Self.origin), .unknown) == nil)
  }

  @Test("a request that is no preflight goes on")
  func noPreflight() throws {
    for request in [
      preflight(Self.origin, nil), preflight(nil), preflight(Self.origin, "POST", "POST"),
      preflight(Self.origin, "POST", "options"),
    ] {
      #expect(try Self.rule.preflight(request, .packets) == nil)
    }
  }

  @Test("a preflight of another origin is refused, with the option that declares it")
  func refused() throws {
    for rule in [Self.rule, .none] {
      let problem = #expect(throws: Problem.self) {
        try rule.preflight(preflight("https://evil.example"), .packets)
      }
      #expect(problem?.code == .forbidden)
      #expect(problem?.detail.contains("--allow-origin") == true)
    }
  }

  @Test("pages may send every header that the endpoints describe, and read every one of an answer")
  func describedHeaders() throws {
    let text = try Project.text("Protocol/openapi.yaml")
    let block = text.matches(of: #/name: ([A-Za-z-]+)\n +in: header/#).map { String($0.1) }
    let inline = text.matches(of: #/\{name: ([A-Za-z-]+), in: header/#).map { String($0.1) }
    #expect(block.contains("Ferry-Protocol") && inline.contains("If-Range"))
    #expect(Set(block + inline).isSubset(of: CrossOriginRule.requestHeaders))
    let answers = Self.describedAnswerHeaders(text)
    #expect(answers.isSuperset(of: ["Retry-After", "WWW-Authenticate", "Upload-Offset"]))
    // Every page may read these (Fetch, CORS-safelisted response-header name).
    let readable: Set = ["Cache-Control", "Content-Length", "Content-Type", "Last-Modified"]
    #expect(answers.subtracting(readable).isSubset(of: CrossOriginRule.answerHeaders))
  }

  /// Returns the names one level below each `headers:`.
  private static func describedAnswerHeaders(_ text: String) -> Set<String> {
    var found: Set<String> = []
    var indentation: Int?
    for line in text.split(separator: "\n") {
      let depth = line.prefix { $0 == " " }.count
      if let outer = indentation, depth == outer + 2, let end = line.firstIndex(of: ":") {
        found.insert(String(line[..<end].dropFirst(depth)))
      } else if indentation.map({ depth <= $0 }) ?? true {
        indentation = line.dropFirst(depth) == "headers:" && depth > 2 ? depth : nil
      }
    }
    return found
  }

  @Test("an open server lets in pages of a declared origin, and no others")
  func openServer() async throws {
    var policy = OpenPolicy.loopback()
    policy.crossOrigin = Self.rule
    func code(_ headers: HTTPHeaders) -> ProblemCode? {
      var headers = headers
      if headers["Host"] == nil { headers["Host"] = "127.0.0.1:8080" }
      return policy.fault(of: Visitor(headers: headers, address: "127.0.0.1"))?.code
    }
    #expect(code(["Origin": Self.origin, "Sec-Fetch-Site": "cross-site"]) == nil)
    #expect(code(["Origin": "https://evil.example"]) == .forbidden)
    #expect(code(["Sec-Fetch-Site": "cross-site"]) == .forbidden, "an image or a form")
    #expect(code(["Origin": Self.origin, "Host": "evil.example"]) == .forbidden, "rebinding")
    #expect(code(["Origin": Self.origin, "X-Forwarded-For": "1.2.3.4"]) == .forbidden)
    #expect(
      code(["Origin": Self.origin, "Content-Length": "2", "Content-Type": "text/plain"])
        == .unsupportedMediaType)
  }
}
