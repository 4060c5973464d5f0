import FerryProtocol
import FerryTestSupport
import Testing

@testable import FerrySyncServer

/// The rate of a space, shared by the space's principals.
@Suite("Rates of spaces", .hangLimit)
struct SharedAllowanceTests {
  private static func limits(_ rate: Int, burst: Int) -> RateLimits {
    var limits = RateLimits(requests: 0, requestBurst: 1, bytes: 0, failures: 0)
    (limits.spaceRequests, limits.spaceRequestBurst, limits.spaceBytes) = (rate, burst, 0)
    return limits
  }

  private let notes = SpaceName("notes")
  private let other = SpaceName("other")

  private func principal(_ name: String) throws -> Principal { try #require(Principal(name)) }

  @Test("a space above its rate refuses those that took much, and serves the others")
  func fair() throws {
    var limiter = RateLimiter(Self.limits(10, burst: 100))
    let (ada, eve) = (try principal("owner:ada"), try principal("owner:eve"))
    var passed = 0
    for _ in 0..<400 where limiter.countRequest(of: eve, in: notes, now: .zero) == nil {
      passed += 1
    }
    // The shares count from the moment on at which half of the burst is used.
    #expect((100...150).contains(passed), "\(passed)")
    #expect(limiter.countRequest(of: eve, in: notes, now: .zero)?.limit == .space)
    for _ in 0..<20 { #expect(limiter.countRequest(of: ada, in: notes, now: .zero) == nil) }
    #expect(limiter.countRequest(of: eve, in: other, now: .zero) == nil, "another space")
    #expect(limiter.countRequest(of: eve, in: nil, now: .zero) == nil, "no space")
    // Each has a share of the rate from then on: 5 a second.
    var counts = [0, 0]
    for step in 1...2_000 {
      let now = Duration.seconds(60) + .milliseconds(step * 10)
      if limiter.countRequest(of: eve, in: notes, now: now) == nil { counts[0] += 1 }
      if limiter.countRequest(of: ada, in: notes, now: now) == nil { counts[1] += 1 }
    }
    #expect(abs(counts[0] - counts[1]) <= 2, "\(counts)")
    #expect(counts[0] + counts[1] <= 100 + 200 + 100, "\(counts)")
  }

  @Test("many principals take no more of a space together than one in its place, but for a share")
  func together() throws {
    var limiter = RateLimiter(Self.limits(10, burst: 100))
    var passed = 0
    for round in 0..<50 {
      for number in 0..<30 {
        let member = try principal("jwt:i#\(number)")
        if limiter.countRequest(of: member, in: notes, now: .milliseconds(round)) == nil {
          passed += 1
        }
      }
    }
    #expect(passed >= 100 && passed <= 200, "\(passed)")
  }

  @Test("accounts of a busy space are bounded, and forgotten when it is quiet")
  func bounded() throws {
    var allowance = SharedAllowance(burst: 10, now: .zero)
    for number in 0..<5_000 {
      let member = try principal("jwt:i#\(number)")
      _ = allowance.consume(1, of: member, rate: 1, burst: 10, now: .zero)
      allowance.force(1, of: member, rate: 1, burst: 10, now: .zero)
      #expect(allowance.accountCount <= SharedAllowance.accountsMax)
    }
    let member = try principal("owner:ada")
    #expect(allowance.consume(1, of: member, rate: 1, burst: 10, now: .seconds(60)) == nil)
    #expect(allowance.accountCount == 0)
  }

  @Test("the number of known spaces is bounded")
  func spaces() throws {
    var limiter = RateLimiter(Self.limits(10, burst: 100), countMax: 100)
    let ada = try principal("owner:ada")
    for number in 0..<1_000 {
      let now = Duration.milliseconds(number)
      #expect(limiter.countRequest(of: ada, in: SpaceName("s\(number)"), now: now) == nil)
      #expect(limiter.spaceCount <= 100)
    }
  }

  @Test("bytes of a space count likewise")
  func bytes() throws {
    var limits = Self.limits(0, burst: 1)
    limits.spaceBytes = 100
    var limiter = RateLimiter(limits)
    let (ada, eve) = (try principal("owner:ada"), try principal("owner:eve"))
    #expect(limiter.countRequest(of: eve, in: notes, now: .zero) == nil)
    limiter.count(bytes: 1_200, of: eve, in: notes, now: .zero)
    #expect(limiter.countRequest(of: eve, in: notes, now: .zero)?.limit == .space)
    #expect(limiter.countRequest(of: ada, in: notes, now: .zero) == nil)
  }
}
