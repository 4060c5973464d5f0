import FerryNetworking
import FerryTestSupport
import Testing

@testable import FerryCaching

/// A response's fields, and the seconds from the arrival for which it is fresh.
struct FreshnessCase: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let headers: TransportHeaders
  let status: Int
  let seconds: Int64

  init(_ name: String, _ headers: TransportHeaders, status: Int = 200, fresh seconds: Int64) {
    testDescription = name
    self.headers = headers
    self.status = status
    self.seconds = seconds
  }

  static let all: [FreshnessCase] = [
    .init("max-age", ["Cache-Control": "max-age=60"], fresh: 60),
    .init("a quoted max-age", ["Cache-Control": "max-age=\"60\""], fresh: 60),
    .init("names without case", ["cache-control": "MAX-AGE=60"], fresh: 60),
    .init("the first of two", ["Cache-Control": "max-age=60, max-age=600"], fresh: 60),
    .init(
      "the first of two lines",
      ["Cache-Control": "max-age=60", "Cache-Control": "max-age=600"], fresh: 60),
    .init("a max-age that is none", ["Cache-Control": "max-age=soon"], fresh: 0),
    .init("a negative max-age", ["Cache-Control": "max-age=-1"], fresh: 0),
    .init("a max-age without a number", ["Cache-Control": "max-age"], fresh: 0),
    .init(
      "a max-age too large to count", ["Cache-Control": "max-age=99999999999999999999"],
      fresh: 1 << 31),
    .init(
      "a directive in another's quotes", ["Cache-Control": "x=\"a, max-age=600\", max-age=60"],
      fresh: 60),
    .init("max-age less Age", ["Cache-Control": "max-age=60", "Age": "20"], fresh: 40),
    .init(
      "the first of several ages", ["Cache-Control": "max-age=60", "Age": "20, 50"], fresh: 40),
    .init("an Age that is none", ["Cache-Control": "max-age=60", "Age": "old"], fresh: 60),
    .init("an Age over max-age", ["Cache-Control": "max-age=60", "Age": "61"], fresh: 0),
    .init(
      "a Date before the arrival", ["Cache-Control": "max-age=60", "Date": date(-30)], fresh: 30),
    .init(
      "the greater of both ages",
      ["Cache-Control": "max-age=60", "Date": date(-30), "Age": "10"], fresh: 30),
    .init(
      "a Date after the arrival", ["Cache-Control": "max-age=60", "Date": date(999)], fresh: 60),
    .init(
      "s-maxage, which is for others", ["Cache-Control": "s-maxage=600, max-age=60"], fresh: 60),
    .init("s-maxage alone", ["Cache-Control": "s-maxage=600"], fresh: 0),
    .init("private", ["Cache-Control": "private, max-age=60"], fresh: 60),
    .init("Expires", ["Date": date(), "Expires": date(60)], fresh: 60),
    .init("Expires without Date", ["Expires": date(60)], fresh: 60),
    .init("Expires by a slow clock", ["Date": date(-100), "Expires": date(-40)], fresh: 0),
    .init("max-age over Expires", ["Cache-Control": "max-age=60", "Expires": date(-1)], fresh: 60),
    .init("Expires: 0", ["Date": date(), "Expires": "0"], fresh: 0),
    .init("Expires in the past", ["Date": date(), "Expires": date(-60)], fresh: 0),
    .init(
      "the first Expires", ["Date": date(), "Expires": date(60), "Expires": date(90)], fresh: 60),
    .init("a tenth since Last-Modified", ["Date": date(), "Last-Modified": date(-600)], fresh: 60),
    .init("a tenth without Date", ["Last-Modified": date(-600)], fresh: 60),
    .init("a day at most", ["Last-Modified": date(-100 * 86400)], fresh: 86400),
    .init("Last-Modified in the future", ["Last-Modified": date(60)], fresh: 0),
    .init(
      "nothing guessed beside Expires", ["Last-Modified": date(-600), "Expires": "0"], fresh: 0),
    .init("a guess for 404", ["Last-Modified": date(-600)], status: 404, fresh: 60),
    .init("no guess for 302", ["Last-Modified": date(-600)], status: 302, fresh: 0),
    .init(
      "a guess for 302 if public",
      ["Last-Modified": date(-600), "Cache-Control": "public"], status: 302, fresh: 60),
    .init("no field at all", [:], fresh: 0),
    .init("no-cache", ["Cache-Control": "no-cache, max-age=60"], fresh: 0),
    .init("no-cache of a field", ["Cache-Control": "no-cache=\"X\", max-age=60"], fresh: 0),
    .init("must-revalidate", ["Cache-Control": "must-revalidate, max-age=60"], fresh: 60),
    .init("immutable", ["Cache-Control": "max-age=60, immutable"], fresh: 60),
  ]
}

@Suite("Freshness (RFC 9111 §4.2)", .hangLimit)
struct FreshnessTests {
  @Test(
    "an answer is fresh as long as the fields allow, and no second longer",
    arguments: FreshnessCase.all)
  func table(_ test: FreshnessCase) {
    let head = CachedHead(test.headers, status: test.status)
    let policy = CachePolicy(options: CacheOptions())
    if test.seconds > 0 {
      #expect(policy.judge(head, now: arrival + test.seconds * 1000 - 1).isFresh)
    }
    #expect(!policy.judge(head, now: arrival + test.seconds * 1000).isFresh)
  }

  @Test("the duration of the request counts towards a given age")
  func delay() {
    var head = CachedHead(["Age": "10"])
    head.requested -= 5000
    #expect(Freshness.age(of: head, now: arrival + 1000) == 16_000)
  }

  @Test("freshness ends if the clock was set to before the arrival, but not by a small step")
  func clockSetBack() {
    let head = CachedHead(["Cache-Control": "max-age=600"])
    let policy = CachePolicy(options: CacheOptions())
    #expect(policy.judge(head, now: arrival - 60_000).isFresh)
    #expect(!policy.judge(head, now: arrival - 60_001).isFresh)
    let own = CachePolicy(options: CacheOptions(lifetime: .seconds(600)))
    #expect(!own.judge(head, now: arrival - 60_001).isFresh)
  }
}
