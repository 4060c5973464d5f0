import FerryNetworking
import FerryTestSupport
import Testing

@testable import FerryCaching

@Suite("The cache rule of a request and an answer", .hangLimit)
struct CachePolicyTests {
  private func isFresh(
    _ headers: TransportHeaders, after seconds: Int64, status: Int = 200,
    options: CacheOptions = CacheOptions(), request: TransportHeaders = [:]
  ) -> Bool {
    CachePolicy(options: options, headers: request)
      .judge(CachedHead(headers, status: status), now: arrival + seconds * 1000).isFresh
  }

  @Test(
    "the rule's own lifetime replaces the server's",
    arguments: [
      "max-age=5", "max-age=5000", "no-cache", "max-age=0, must-revalidate", "s-maxage=1", "",
    ])
  func ownLifetime(control: String) {
    let options = CacheOptions(lifetime: .seconds(60))
    // The server's clock is an hour behind; only the time here counts.
    let headers: TransportHeaders = ["Cache-Control": control, "Date": date(-3600), "Age": "99"]
    #expect(isFresh(headers, after: 59, options: options))
    #expect(!isFresh(headers, after: 60, options: options))
  }

  @Test(
    "an image with only an ETag is fresh for the lifetime that the rule has for such answers",
    arguments: [
      (["ETag": "x"], 59, true), (["ETag": "x"], 60, false),
      (["ETag": "x", "Cache-Control": "max-age=5"], 6, false),
      (["ETag": "x", "Cache-Control": "max-age=90"], 60, true),
      (["ETag": "x", "Cache-Control": "no-cache"], 1, false),
      (["ETag": "x", "Expires": "0"], 1, false),
    ] as [(TransportHeaders, Int64, Bool)])
  func unstatedLifetime(headers: TransportHeaders, seconds: Int64, expected: Bool) {
    let options = CacheOptions(unstatedLifetime: .seconds(60))
    #expect(isFresh(headers, after: seconds, options: options) == expected)
    #expect(!isFresh(["ETag": "x"], after: 1, options: CacheOptions()))
    #expect(!isFresh([:], after: 1, status: 404, options: options))
  }

  @Test("the rule's own lifetime does not apply to an unsuccessful status")
  func ownLifetimeOfFailures() {
    let options = CacheOptions(lifetime: .seconds(60))
    #expect(!isFresh([:], after: 1, status: 404, options: options))
    #expect(isFresh(["Cache-Control": "max-age=5"], after: 1, status: 404, options: options))
  }

  @Test(
    "a request can require a fresher answer, or accept a staler one (RFC 9111 §5.2.1)",
    arguments: [
      ("max-age=10", 10, true), ("max-age=10", 11, false), ("max-age=0", 1, false),
      ("min-fresh=20", 39, true), ("min-fresh=20", 40, false), ("no-cache", 0, false),
      ("max-stale=10", 69, true), ("max-stale=10", 70, false), ("max-stale", 100_000, true),
      ("max-stale=10, max-age=5", 65, false), ("max-stale=x", 60, false), ("x", 59, true),
    ])
  func requestDirectives(directive: String, seconds: Int64, expected: Bool) {
    #expect(
      isFresh(
        ["Cache-Control": "max-age=60"], after: seconds, request: ["Cache-Control": directive])
        == expected)
  }

  @Test("Pragma applies if there is no Cache-Control")
  func pragma() {
    let headers: TransportHeaders = ["Cache-Control": "max-age=60"]
    #expect(!isFresh(headers, after: 1, request: ["Pragma": "no-cache"]))
    #expect(
      isFresh(headers, after: 1, request: ["Pragma": "no-cache", "Cache-Control": "max-age=9"]))
  }

  @Test("an answer that max-stale allows is marked as stale")
  func overdue() {
    let judgement = CachePolicy(
      options: CacheOptions(), headers: ["Cache-Control": "max-stale=10"]
    ).judge(CachedHead(["Cache-Control": "max-age=60"]), now: arrival + 65_000)
    #expect(judgement.isFresh && judgement.isOverdue)
  }

  @Test("max-stale changes nothing for must-revalidate")
  func maxStale() {
    #expect(
      !isFresh(
        ["Cache-Control": "max-age=60, must-revalidate"], after: 61,
        request: ["Cache-Control": "max-stale"]))
  }

  @Test(
    "without a network a stale answer serves if the rule allows it and no answer forbids it",
    arguments: [
      ("max-age=60", true, nil, true), ("max-age=60", false, nil, false), ("", true, nil, true),
      ("max-age=60, stale-if-error=600", false, nil, false),
      ("max-age=60, must-revalidate", true, nil, false), ("no-cache", true, nil, false),
      ("max-age=60, must-revalidate", true, Duration.seconds(9), true),
      ("no-cache", true, Duration.seconds(9), true),
      ("no-cache", false, Duration.seconds(9), false),
    ])
  func offline(control: String, rule: Bool, lifetime: Duration?, expected: Bool) {
    let options = CacheOptions(lifetime: lifetime, staleWhenOffline: rule)
    let judgement = CachePolicy(options: options)
      .judge(CachedHead(["Cache-Control": control]), now: arrival + 1_000_000)
    #expect(!judgement.isFresh && judgement.isOverdue)
    #expect(judgement.servesOffline == expected)
  }

  @Test("without a network an answer that must be revalidated serves while it is fresh")
  func offlineWhileFresh() {
    let judgement = CachePolicy(
      options: CacheOptions(staleWhenOffline: true), headers: ["Cache-Control": "no-cache"]
    ).judge(CachedHead(["Cache-Control": "max-age=60, must-revalidate"]), now: arrival)
    #expect(!judgement.isFresh && judgement.servesOffline && !judgement.isOverdue)
  }

  @Test("both validators are sent, and neither if the rule forbids it")
  func validators() {
    let head = CachedHead(["ETag": "W/\"a\"", "Last-Modified": date(-60)])
    #expect(
      CachePolicy(options: CacheOptions()).judge(head, now: arrival).validators
        == ["If-None-Match": "W/\"a\"", "If-Modified-Since": date(-60)])
    #expect(
      CachePolicy(options: CacheOptions(revalidate: false)).judge(head, now: arrival).validators
        == [:])
    let odd = CachedHead(["Last-Modified": "yesterday"])
    #expect(CachePolicy(options: CacheOptions()).judge(odd, now: arrival).validators == [:])
  }
}
