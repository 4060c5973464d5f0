import FerryProtocol
import FerrySyncServer
import FerryTestSupport
import Testing

@Suite("The choice of traces", .hangLimit)
struct TraceSamplerTests {
  private static func sampler(
    _ ratio: String, perSecond: Int = 1_000_000, seed: UInt64 = 1
  ) throws -> TraceSampler {
    var generator = SeededGenerator(seed: seed)
    return TraceSampler(
      ratio: try #require(TraceRatio(ratio)), perSecond: perSecond,
      random: { generator.next() })
  }

  private static func trace(_ number: UInt64) -> TraceID {
    TraceID(random: { number })
  }

  @Test(
    "a ratio is a number from 0 to 1 with six digits at most",
    arguments: [
      ("0", 0), ("1", 1_000_000), ("0.5", 500_000), ("0.000001", 1), ("1.000000", 1_000_000),
      ("00.25", 250_000), ("", nil), (".5", nil), ("1.", nil), ("1.1", nil), ("2", nil),
      ("-0.5", nil), ("0.0000001", nil), ("1e-3", nil), ("50%", nil), ("0.5.5", nil), ("0,5", nil),
      ("+1", nil), ("٠", nil), ("99999999999999999999", nil),
    ] as [(String, Int?)])
  func ratio(_ text: String, _ millionths: Int?) {
    #expect(TraceRatio(text)?.millionths == millionths)
  }

  @Test("about the ratio of all traces is chosen, and a trace gets the same answer each time")
  func share() throws {
    var sampler = try Self.sampler("0.1")
    var chosen = 0
    for number in UInt64(1)...20_000 {
      let now = Duration.milliseconds(Int64(number))
      let choice = sampler.choose(Self.trace(number), isSampledByCaller: true, now: now)
      #expect(
        sampler.choose(Self.trace(number), isSampledByCaller: true, now: now) == choice)
      if choice == .sampled { chosen += 1 }
    }
    // Ten standard deviations around 2,000.
    #expect((1_576...2_424).contains(chosen))
  }

  @Test("a caller cannot know which identifiers are chosen: another process chooses others")
  func secret() throws {
    func chosen(_ seed: UInt64) throws -> Set<UInt64> {
      var sampler = try Self.sampler("0.1", seed: seed)
      return Set(
        (UInt64(1)...2_000).filter {
          let now = Duration.milliseconds(Int64($0))
          return sampler.choose(Self.trace($0), isSampledByCaller: true, now: now) == .sampled
        })
    }
    let (one, two) = (try chosen(1), try chosen(2))
    #expect(!one.isEmpty && !two.isEmpty)
    #expect(one.intersection(two).count < one.count / 2)
  }

  @Test("the caller's flag can leave a trace out, and never force it in")
  func flag() throws {
    var none = try Self.sampler("0")
    var all = try Self.sampler("1")
    for number in UInt64(1)...100 {
      let trace = Self.trace(number)
      #expect(none.choose(trace, isSampledByCaller: true, now: .zero) == .left)
      #expect(all.choose(trace, isSampledByCaller: false, now: .zero) == .left)
      #expect(all.choose(trace, isSampledByCaller: true, now: .zero) == .sampled)
    }
  }

  @Test("a caller that repeats a chosen trace gets no further than the rate")
  func rate() throws {
    var sampler = try Self.sampler("1", perSecond: 10)
    func sampled(at now: Duration) -> Int {
      (0..<1_000).count { _ in
        sampler.choose(Self.trace(7), isSampledByCaller: true, now: now) == .sampled
      }
    }
    #expect(sampled(at: .seconds(5)) == 10)
    #expect(sampled(at: .seconds(5)) == 0)
    #expect(sampled(at: .seconds(5) + .milliseconds(250)) == 2)
    #expect(sampled(at: .seconds(100)) == 10)
    #expect(
      sampler.choose(Self.trace(7), isSampledByCaller: true, now: .seconds(100)) == .limited)
  }
}
