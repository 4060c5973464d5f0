import FerryNetworking
import FerryTestSupport
import Testing

@Suite("The retry policy", .hangLimit)
struct RetryPolicyTests {
  private let policy = RetryPolicy(
    delayBase: .seconds(1), delayMax: .seconds(10), retryAfterMax: .seconds(100), attemptsMax: nil)

  @Test(
    "the ceiling of pauses doubles up to its limit",
    arguments: [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (1_000_000, 10)])
  func ceiling(failures: Int, seconds: Int) throws {
    let longest = try #require(policy.delay(afterFailures: failures, random: .max))
    #expect(longest == .seconds(seconds) - .nanoseconds(1))
    #expect(policy.delay(afterFailures: failures, random: 0) == .zero)
    #expect(policy.delay(afterFailures: failures, random: 1 << 63) == .seconds(seconds) / 2)
  }

  @Test("a policy gives up after the last attempt, even if the server names a pause")
  func attempts() {
    var bounded = policy
    bounded.attemptsMax = 3
    #expect(bounded.delay(afterFailures: 2, random: 0) != nil)
    #expect(bounded.delay(afterFailures: 3, random: 0) == nil)
    #expect(bounded.delay(afterFailures: 3, retryAfter: .seconds(1), random: 0) == nil)
  }

  @Test("a pause is at least as long as the server asks, within reason")
  func retryAfter() {
    #expect(policy.delay(afterFailures: 1, retryAfter: .seconds(30), random: 0) == .seconds(30))
    #expect(
      policy.delay(afterFailures: 1, retryAfter: .seconds(30), random: 1 << 63)
        == .milliseconds(30_500))
    #expect(
      policy.delay(afterFailures: 1, retryAfter: .seconds(1 << 40), random: 0) == .seconds(100))
    #expect(policy.delay(afterFailures: 1, retryAfter: .seconds(-5), random: 0) == .zero)
  }

  @Test(
    "Retry-After is read in seconds and as a date",
    arguments: [
      ("0", 0), ("120", 120), ("99999999999999999999", 999_999_999),
      ("Sun, 06 Nov 1994 08:49:37 GMT", 37), ("Sunday, 06-Nov-94 08:49:37 GMT", 37),
      ("Sun Nov  6 08:49:37 1994", 37), ("Sat, 05 Nov 1994 08:49:37 GMT", 0),
      ("", nil), ("-1", nil), ("1.5", nil), ("soon", nil), ("Sun, 06 Nov 1994 08:49:37 CET", nil),
      ("Sun, 06 Foo 1994 08:49:37 GMT", nil), ("Sun, 32 Nov 1994 08:49:37 GMT", nil),
      ("Sun, 06 Nov 1994 24:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:49 GMT", nil),
      ("Sun, 06 Nov 99999 08:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:49:+7 GMT", nil),
    ] as [(String, Int?)])
  func retryAfterField(field: String, seconds: Int?) {
    #expect(RetryPolicy.retryAfter(field, now: 784_111_740) == seconds.map { .seconds($0) })
  }

  @Test(
    "dates of every kind are read",
    arguments: [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
      ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
      ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
      ("Friday, 01-Jan-27 00:00:00 GMT", 1_798_761_600),
      ("Friday, 01-Jan-99 00:00:00 GMT", 915_148_800),
    ] as [(String, Int64)])
  func dates(text: String, seconds: Int64) {
    #expect(HTTPDate.parse(text, now: 1_700_000_000) == seconds)
  }

  @Test(
    "temporary statuses are retried",
    arguments: [
      (200, false), (304, false), (400, false), (401, false), (404, false), (408, true),
      (409, false),
      (413, false), (425, true), (429, true), (500, true), (501, false), (502, true), (503, true),
      (504, true),
    ])
  func statuses(status: Int, isTransient: Bool) {
    #expect(RetryPolicy.isTransient(status: status) == isTransient)
  }
}
