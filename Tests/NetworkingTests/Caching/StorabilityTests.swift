import FerryNetworking
import FerryTestSupport
import Testing

@testable import FerryCaching

/// An exchange, and true if the response may be kept.
struct StorabilityCase: Sendable, CustomTestStringConvertible {
  let testDescription: String
  var status = 200
  var headers: TransportHeaders = [:]
  var request = CacheableRequest(endpoint: "http://host/x")
  let isKept: Bool

  init(
    _ name: String, _ isKept: Bool, _ headers: TransportHeaders = [:], status: Int = 200,
    method: TransportMethod = .get, request: TransportHeaders = [:],
    options: CacheOptions = CacheOptions()
  ) {
    testDescription = name
    self.isKept = isKept
    self.status = status
    self.headers = headers
    self.request = CacheableRequest(
      method: method, endpoint: "http://host/x", headers: request, options: options)
  }

  static let fresh: TransportHeaders = ["Cache-Control": "max-age=60"]
  static let own = CacheOptions(lifetime: .seconds(60))
  static let all: [StorabilityCase] = [
    .init("max-age", true, fresh),
    .init("a POST", false, fresh, method: .post),
    .init("a HEAD", false, fresh, method: .head),
    .init("no-store", false, ["Cache-Control": "no-store, max-age=60"]),
    .init(
      "no-store against a lifetime of one's own", false, ["Cache-Control": "no-store"], options: own
    ),
    .init("no-store of the request", false, fresh, request: ["Cache-Control": "no-store"]),
    .init(
      "must-understand with a status that is", true,
      ["Cache-Control": "no-store, must-understand, max-age=60"]),
    .init(
      "must-understand with one that is not", false,
      ["Cache-Control": "must-understand, max-age=60"], status: 299),
    .init("private, as this cache is", true, ["Cache-Control": "private, max-age=60"]),
    .init("an answer to credentials", true, fresh, request: ["Authorization": "Bearer x"]),
    .init("part of a body", false, fresh, status: 206),
    .init("what asked for a part", false, fresh, request: ["Range": "bytes=0-1"]),
    .init("an interim answer", false, fresh, status: 103),
    .init("a status nobody keeps by itself", false, ["Last-Modified": date(-600)], status: 302),
    .init("such a status when told to", true, fresh, status: 302),
    .init("404 with a lifetime", true, fresh, status: 404),
    .init("a 500 with Expires", true, ["Expires": date(60)], status: 500),
    .init("only s-maxage", false, ["Cache-Control": "s-maxage=60"]),
    .init("Vary: *", false, ["Cache-Control": "max-age=60", "Vary": "Accept, *"]),
    .init("Vary", true, ["Cache-Control": "max-age=60", "Vary": "Accept"]),
    .init("nothing that could serve", false),
    .init("the same under a lifetime of one's own", true, options: own),
    .init("such a lifetime and a 404", false, status: 404, options: own),
    .init("the same for times offline", true, options: CacheOptions(staleWhenOffline: true)),
    .init("only a validator", true, ["ETag": "\"a\""]),
    .init(
      "only a validator nobody sends", false, ["ETag": "\"a\""],
      options: CacheOptions(revalidate: false)),
    .init("no-cache with a validator", true, ["Cache-Control": "no-cache", "ETag": "\"a\""]),
    .init("no-cache without one", false, ["Cache-Control": "no-cache"]),
  ]
}

@Suite("Storable answers (RFC 9111 §3)", .hangLimit)
struct StorabilityTests {
  @Test(
    "status, fields and rule decide whether an answer is stored", arguments: StorabilityCase.all)
  func table(_ test: StorabilityCase) {
    let response = NetworkResponse(status: test.status, headers: test.headers)
    #expect(
      Storability.allows(response, for: test.request, received: arrival) == test.isKept)
  }

  @Test("fields of the connection are not stored")
  func fields() {
    let kept = Storability.kept([
      "A": "1", "Connection": "close, X-Hop", "X-Hop": "2", "Transfer-Encoding": "chunked",
      "a": "3", "Keep-Alive": "x", "Proxy-Authenticate": "x", "Set-Cookie": "c",
    ])
    #expect(kept == ["A": "1", "a": "3", "Set-Cookie": "c"])
  }
}
