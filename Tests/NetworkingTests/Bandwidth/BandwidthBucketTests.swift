import FerryTestSupport
import Testing

@testable import FerryNetworking

@Suite("A bandwidth limit", .hangLimit)
struct BandwidthBucketTests {
  private let start = ContinuousClock.now

  @Test("a limit allows a tenth of a second's bytes at once, and then delays")
  func credit() {
    var bucket = BandwidthBucket(bytesPerSecond: 1_000, now: start)
    #expect(bucket.wait(at: start) == nil)
    bucket.consume(600, at: start)
    // 100 were there; 500 are owed, and one byte more has to be there before the next may go.
    #expect(bucket.wait(at: start) == .milliseconds(501))
    #expect(bucket.wait(at: start + .milliseconds(500)) == .milliseconds(1))
    #expect(bucket.wait(at: start + .milliseconds(501)) == nil)
  }

  @Test("a limit saves up no more than a tenth of a second's bytes")
  func saving() {
    var bucket = BandwidthBucket(bytesPerSecond: 1_000, now: start)
    let later = start + .seconds(3600)
    bucket.consume(100, at: later)
    #expect(bucket.wait(at: later) == .milliseconds(1))
  }

  @Test("a limit ignores a time before the last one")
  func backwards() {
    var bucket = BandwidthBucket(bytesPerSecond: 1_000, now: start)
    bucket.consume(100, at: start + .seconds(1))
    #expect(bucket.wait(at: start) == .milliseconds(1))
  }

  @Test(
    "a limit holds over any time, in parts of any size",
    arguments: [1, 7, 1_000, 123_456, 50 << 20], [1, 1_000, 16_384])
  func rate(bytesPerSecond: Int, part: Int) throws {
    var bucket = BandwidthBucket(bytesPerSecond: bytesPerSecond, now: start)
    var now = start
    var taken = 0
    for _ in 1...1_000 {
      if let wait = bucket.wait(at: now) {
        #expect(wait > .zero)
        // The waiter's wake-up is at most a little late.
        now += wait + .microseconds(1)
        #expect(bucket.wait(at: now) == nil)
      }
      bucket.consume(part, at: now)
      taken += part
      let allowed = Double(bytesPerSecond) * (start.duration(to: now) / .seconds(1) + 0.1)
      #expect(Double(taken - part) <= allowed + 1)
    }
    // Nor is it slower than it has to be.
    let seconds = start.duration(to: now) / .seconds(1)
    #expect(seconds <= Double(taken + 1_000) / Double(bytesPerSecond) + 0.01)
  }

  @Test("a limit of zero is one byte a second")
  func nothing() {
    var bucket = BandwidthBucket(bytesPerSecond: -5, now: start)
    bucket.consume(1, at: start)
    #expect(bucket.wait(at: start) == .seconds(1))
  }
}
