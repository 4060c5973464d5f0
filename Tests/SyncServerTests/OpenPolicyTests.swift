import FerryHTTPServer
import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("Requests to an open server", .hangLimit)
struct OpenPolicyTests {
  private static let policies: [OpenPolicy] = [
    .loopback(), .loopback(alsoNamed: ["ferry.test"]), .insecure(),
    .insecure(alsoNamed: ["ferry.test"]),
  ]

  private func visitor(_ headers: HTTPHeaders, host: String = "127.0.0.1:8080") -> Visitor {
    var headers = headers
    headers["Host"] = host
    return Visitor(headers: headers, address: "127.0.0.1")
  }

  @Test(
    "an open server refuses requests of web pages and proxies, in any configuration",
    arguments: [
      ("Origin", "https://evil.example", ProblemCode.forbidden), ("Origin", "null", .forbidden),
      ("Origin", "http://127.0.0.1:8081", .forbidden), ("Forwarded", "for=1.2.3.4", .forbidden),
      ("X-Forwarded-For", "1.2.3.4", .forbidden), ("x-real-ip", "1.2.3.4", .forbidden),
      ("Via", "1.1 proxy", .forbidden), ("X-Forwarded-Host", "a", .forbidden),
      ("Sec-Fetch-Site", "cross-site", .forbidden), ("Sec-Fetch-Site", "same-site", .forbidden),
      ("Content-Length", "2", .unsupportedMediaType),
      ("Transfer-Encoding", "chunked", .unsupportedMediaType),
    ])
  func refused(_ name: String, _ value: String, _ code: ProblemCode) {
    var headers = HTTPHeaders()
    headers[name] = value
    for policy in Self.policies { #expect(policy.fault(of: visitor(headers))?.code == code) }
    #expect(OpenPolicy.trusted.fault(of: visitor(headers)) == nil)
  }

  @Test("an open server takes requests of its own page, and of no other port, scheme or name")
  func ownPage() {
    let own: HTTPHeaders = ["Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:8080"]
    for policy in Self.policies {
      #expect(policy.fault(of: visitor(["Sec-Fetch-Site": "same-origin"])) == nil)
      #expect(policy.fault(of: visitor(own)) == nil)
    }
    let others: [(origin: String, site: String?, host: String)] = [
      ("http://127.0.0.1:8081", "same-site", "127.0.0.1:8080"),
      ("http://127.0.0.1:8081", nil, "127.0.0.1:8080"),
      ("https://127.0.0.1:8080", nil, "127.0.0.1:8080"),
      ("http://127.0.0.1:8080", "cross-site", "127.0.0.1:8080"),
      ("http://localhost:8080", nil, "127.0.0.1:8080"), ("null", nil, "127.0.0.1:8080"),
      // A page that bound another name to this machine.
      ("http://evil.example:8080", "same-origin", "evil.example:8080"),
    ]
    for (origin, site, host) in others {
      var headers: HTTPHeaders = ["Origin": origin]
      if let site { headers["Sec-Fetch-Site"] = site }
      for policy in Self.policies {
        #expect(policy.fault(of: visitor(headers, host: host)) != nil, "\(origin) \(host)")
      }
    }
  }

  @Test(
    "a body is application/json with any parameters, and no type that a form can send",
    arguments: [
      ("application/json", true), ("Application/JSON ; charset=utf-8", true),
      ("text/plain", false), ("application/x-www-form-urlencoded", false),
      ("multipart/form-data; boundary=a", false), ("application/jsonp", false),
      ("text/plain; application/json", false), ("", false),
    ])
  func mediaTypes(_ type: String, _ isFine: Bool) {
    let headers: HTTPHeaders = ["Content-Type": type, "Content-Length": "2"]
    for policy in Self.policies {
      #expect((policy.fault(of: visitor(headers)) == nil) == isFine)
    }
    let upload = Visitor(headers: headers, address: "", takesAnyContent: true)
    #expect(OpenPolicy.loopback().fault(of: upload) == nil)
  }

  @Test("a request without a body needs no media type, even with a length of 0")
  func noBody() {
    for policy in Self.policies {
      #expect(policy.fault(of: visitor([:])) == nil)
      #expect(policy.fault(of: visitor(["Content-Length": "0"])) == nil)
      #expect(policy.fault(of: visitor(["Sec-Fetch-Site": "none"])) == nil, "typed by a person")
    }
  }

  @Test(
    "a Host name is accepted if it is this machine's or was allowed; others are refused",
    arguments: [
      ("localhost", [true, true, true, true]), ("[::1]:80", [true, true, true, true]),
      ("127.3.2.1", [true, true, true, true]), ("evil.example", [false, false, false, false]),
      ("127.0.0.1.evil.example", [false, false, false, false]),
      ("Ferry.Test:8080", [false, true, false, true]),
      ("ferry.test.evil", Array(repeating: false, count: 4)),
      ("192.168.1.2:8080", [false, false, true, true]),
      ("[fe80::1]:8080", [false, false, true, true]),
      ("[::1", [false, false, false, false]), ("1.2.3.4.5", [false, false, false, false]),
    ])
  func hosts(_ host: String, _ isFine: [Bool]) {
    for (policy, isFine) in zip(Self.policies, isFine) {
      #expect((policy.fault(of: visitor([:], host: host)) == nil) == isFine)
    }
  }

  @Test("a form that a web page posts to an open service writes nothing")
  func service() async {
    let fixture = ServiceFixture(checksLoopback: true)
    let body = Packet.serviceSample(1).encoded()
    let path = "/v1/spaces/notes/packets"
    let form = await fixture.send(
      "POST", path, headers: ["Host": "127.0.0.1", "Content-Type": "text/plain"], body: body)
    #expect(form.status == 415 && form.problem?.code == .unsupportedMediaType)
    #expect(fixture.store.state.withLock { $0.batches.isEmpty })
    let client = await fixture.send(
      "POST", path, headers: ["Host": "127.0.0.1", "Content-Type": "application/json"],
      body: body)
    #expect(client.status == 200)
  }
}
