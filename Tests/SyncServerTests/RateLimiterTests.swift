import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("Rates of principals and addresses", .hangLimit)
struct RateLimiterTests {
  private func principal(_ name: String) throws -> Principal { try #require(Principal(name)) }

  @Test("a principal above its rate waits, and no other does")
  func requests() throws {
    var limiter = RateLimiter(RateLimits(requests: 10, requestBurst: 5, bytes: 0, failures: 0))
    let (ada, eve) = (try principal("owner:ada"), try principal("owner:eve"))
    for _ in 0..<5 { #expect(limiter.countRequest(of: eve, now: .seconds(1)) == nil) }
    let waitFound = limiter.countRequest(of: eve, now: .seconds(1))
    let wait = try #require(waitFound?.wait)
    #expect(wait == .milliseconds(100))
    #expect(limiter.countRequest(of: ada, now: .seconds(1)) == nil)
    #expect(limiter.countRequest(of: eve, now: .seconds(1) + wait) == nil)
    #expect(limiter.countRequest(of: eve, now: .seconds(1) + wait) != nil)
    for _ in 0..<5 { #expect(limiter.countRequest(of: eve, now: .seconds(60)) == nil) }
    #expect(limiter.countRequest(of: eve, now: .seconds(60)) != nil, "a pause saves one burst")
  }

  @Test("later requests pay for the bytes of a request, and the debt is bounded")
  func bytes() throws {
    var limiter = RateLimiter(RateLimits(requests: 0, requestBurst: 1, bytes: 100, failures: 0))
    let eve = try principal("owner:eve")
    #expect(limiter.countRequest(of: eve, now: .zero) == nil)
    limiter.count(bytes: 1_200, of: eve, now: .zero)
    let waitFound = limiter.countRequest(of: eve, now: .zero)
    let wait = try #require(waitFound?.wait)
    #expect(wait > .seconds(2) && wait < .seconds(3))
    #expect(limiter.countRequest(of: eve, now: .seconds(3)) == nil)
    limiter.count(bytes: .max, of: eve, now: .seconds(3))
    let longestFound = limiter.countRequest(of: eve, now: .seconds(3))
    let longest = try #require(longestFound?.wait)
    #expect(longest < .seconds(11))
  }

  @Test("a limit of 0 is no limit, and a clock that goes back releases nothing")
  func off() throws {
    var limiter = RateLimiter(RateLimits(requests: 0, requestBurst: 1, bytes: 0, failures: 0))
    let eve = try principal("owner:eve")
    for _ in 0..<1_000 { #expect(limiter.countRequest(of: eve, now: .zero) == nil) }
    for _ in 0..<1_000 { limiter.recordFailure(at: "10.0.0.1", now: .zero) }
    #expect(limiter.failureWait(at: "10.0.0.1", now: .zero) == nil)
    var bucket = TokenBucket(burst: 1, now: .seconds(100))
    #expect(bucket.consume(1, rate: 1, burst: 1, now: .seconds(100)) == nil)
    #expect(bucket.consume(1, rate: 1, burst: 1, now: .zero) != nil)
    #expect(bucket.consume(1, rate: 1, burst: 1, now: .seconds(100)) != nil)
    #expect(bucket.consume(1, rate: 1, burst: 1, now: .seconds(101)) == nil)
  }

  @Test("an address that failed often waits; an IPv6 address counts as its network")
  func failures() {
    var limiter = RateLimiter(RateLimits(requests: 0, requestBurst: 1, bytes: 0, failures: 60))
    for number in 0..<60 {
      #expect(limiter.failureWait(at: "2001:db8::1", now: .zero) == nil)
      limiter.recordFailure(at: "2001:db8::\(number)", now: .zero)
    }
    #expect(limiter.failureWait(at: "2001:db8::ffff", now: .zero) == .seconds(1))
    #expect(limiter.failureWait(at: "2001:db8:0:1::1", now: .zero) == nil)
    #expect(limiter.failureWait(at: "10.0.0.1", now: .zero) == nil)
    #expect(limiter.failureWait(at: "2001:db8::ffff", now: .seconds(2)) == nil)
  }

  @Test("the number of known principals and addresses is bounded, and busy ones stay")
  func bounded() throws {
    var limiter = RateLimiter(
      RateLimits(requests: 1, requestBurst: 2, bytes: 0, failures: 60), countMax: 100)
    let eve = try principal("owner:eve")
    for number in 0..<1_000 {
      let now = Duration.seconds(number * 10)
      for _ in 0..<2 { _ = limiter.countRequest(of: eve, now: now) }
      #expect(limiter.countRequest(of: eve, now: now) != nil)
      _ = try limiter.countRequest(of: principal("owner:\(number)"), now: now)
      limiter.recordFailure(at: "10.0.\(number / 250).\(number % 250)", now: now)
      #expect(limiter.accountCount <= 101 && limiter.addressCount <= 101)
    }
  }

  @Test("the service answers 429 with the time to wait; anonymous requests are not counted")
  func service() async throws {
    let store = ServiceStoreDouble(spaces: ["notes"])
    let time = ServiceClockDouble()
    let gate = AccessGate(
      store: store, clock: time.clock, policy: .trusted,
      limits: RateLimits(requests: 1, requestBurst: 3, bytes: 0, failures: 60))
    let fixture = ServiceFixture(store: store, gate: gate, clock: time)
    for _ in 0..<10 { #expect(await fixture.send("GET", "/v1/spaces/notes").status == 200) }
    let token = try await fixture.token(.reader)
    for _ in 0..<3 {
      #expect(await fixture.send("GET", "/v1/spaces/notes", token: token).status == 200)
    }
    let refused = await fixture.send("GET", "/v1/spaces/notes", token: token)
    #expect(refused.status == 429 && refused.problem?.code == .rateLimited)
    #expect(refused.headers["Retry-After"] == "1")
    #expect(refused.problem?.code.action == .retry)
    #expect(await fixture.send("GET", "/healthz").status == 200)
    time.advance(.seconds(1))
    #expect(await fixture.send("GET", "/v1/spaces/notes", token: token).status == 200)
  }
}
