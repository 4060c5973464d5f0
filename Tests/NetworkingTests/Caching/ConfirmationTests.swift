import FerryNetworking
import FerryTestSupport
import Testing

@testable import FerryCaching

@Suite("A 304 (RFC 9111 §4.3.4)", .hangLimit)
struct ConfirmationTests {
  private static let heads = [
    CachedHead(["ETag": "\"a\"", "Last-Modified": date(-9)], id: 1, received: arrival),
    CachedHead(["ETag": "W/\"b\"", "Last-Modified": date(-8)], id: 2, received: arrival + 1),
    CachedHead(["ETag": "\"a\"", "Vary": "X"], id: 3, received: arrival + 2, for: ["X": "1"]),
  ]

  @Test(
    "a 304 confirms the newest answer with its validator that suits the request",
    arguments: [
      (["ETag": "\"a\""], [:], 1), (["ETag": "\"a\""], ["X": "1"], 3),
      (["ETag": "\"c\""], [:], nil),
      (["ETag": "W/\"b\""], [:], 2), (["ETag": "\"b\""], [:], nil), (["ETag": "W/\"a\""], [:], 1),
      (["Last-Modified": date(-9)], [:], 1), (["Last-Modified": date(-7)], [:], nil),
      ([:], [:], 2), ([:], ["X": "1"], 3),
    ] as [(TransportHeaders, TransportHeaders, Int64?)])
  func target(headers: TransportHeaders, request: TransportHeaders, expected: Int64?) {
    let response = NetworkResponse(status: 304, headers: headers)
    #expect(
      Confirmation.target(of: response, among: Self.heads, for: request)?.id == expected)
  }

  @Test("a 304 renews fields and age, and keeps the fields that describe the body")
  func renewal() {
    let head = CachedHead([
      "Date": date(-500), "Age": "400", "Content-Type": "a/b", "Content-Length": "3",
      "Cache-Control": "max-age=5", "X": "1", "X": "2", "Y": "3",
    ])
    let response = NetworkResponse(
      status: 304,
      headers: [
        "Cache-Control": "max-age=60", "x": "4", "Content-Length": "0", "Content-Type": "c/d",
        "Connection": "close",
      ])
    let renewed = Confirmation.renewed(
      head, by: response, requested: arrival + 8000, received: arrival + 9000)
    #expect(
      renewed.headers == [
        "Content-Type": "a/b", "Content-Length": "3", "Y": "3", "Cache-Control": "max-age=60",
        "x": "4",
      ])
    #expect(renewed.id == head.id && renewed.received == arrival + 9000)
    // It is as fresh as if it had come just now.
    let policy = CachePolicy(options: CacheOptions())
    #expect(policy.judge(renewed, now: arrival + 9000 + 58_999).isFresh)
    #expect(!policy.judge(renewed, now: arrival + 9000 + 60_000).isFresh)
  }
}

@Suite("A change (RFC 9111 §4.4)", .hangLimit)
struct InvalidationTests {
  @Test(
    "a change invalidates its address and the addresses that it names on the same server",
    arguments: [
      (TransportMethod.post, 201, [:], ["http://host/a"]),
      (.put, 204, [:], ["http://host/a"]), (.delete, 200, [:], ["http://host/a"]),
      (.patch, 302, [:], ["http://host/a"]), (.get, 200, [:], []), (.head, 200, [:], []),
      (.post, 400, [:], []), (.delete, 503, [:], []),
      (
        .post, 201, ["Location": "/b?x=1", "Content-Location": "http://HOST:80/c"],
        ["http://host/a", "http://host/b", "http://host/b?x=1", "http://host/c"]
      ),
      (.post, 201, ["Location": "http://other/b"], ["http://host/a"]),
      (.post, 201, ["Location": "https://host/b"], ["http://host/a"]),
    ] as [(TransportMethod, Int, TransportHeaders, [String])])
  func table(
    method: TransportMethod, status: Int, headers: TransportHeaders, expected: [String]
  ) {
    let response = NetworkResponse(status: status, headers: headers)
    let request = CacheableRequest(method: method, endpoint: "http://Host/a")
    #expect(Invalidation.endpoints(after: response, for: request) == expected)
  }
}
