import FerryProtocol
import FerryTestSupport
import Testing

@Suite("The hybrid clock", .hangLimit)
struct HybridClockTests {
  @Test("readings follow the wall clock while it moves forward")
  func forward() {
    var clock = HybridClock()
    #expect(clock.tick(wall: 1_000) == HybridTimestamp(milliseconds: 1_000))
    #expect(clock.tick(wall: 1_005) == HybridTimestamp(milliseconds: 1_005))
  }

  @Test("readings never repeat and never go back, even if the wall clock does")
  func backwards() {
    var random = SeededGenerator(seed: 4)
    var clock = HybridClock()
    var last = HybridTimestamp.zero
    for _ in 0..<10_000 {
      let next = clock.tick(wall: Int64.random(in: -5...2_000, using: &random))
      #expect(next > last)
      last = next
    }
  }

  @Test("a full counter carries into the milliseconds")
  func carry() {
    var clock = HybridClock(last: HybridTimestamp(milliseconds: 1_000, counter: .max))
    #expect(clock.tick(wall: 900) == HybridTimestamp(milliseconds: 1_001))
    var busy = HybridClock()
    for _ in 0..<70_000 { _ = busy.tick(wall: 5) }
    #expect(busy.last == HybridTimestamp(milliseconds: 6, counter: 4_463))
  }

  @Test("a clock runs ahead of every timestamp that it has seen")
  func observing() {
    var clock = HybridClock()
    clock.observe(HybridTimestamp(milliseconds: 5_000, counter: 7))
    #expect(clock.tick(wall: 1_000) == HybridTimestamp(milliseconds: 5_000, counter: 8))
    clock.observe(HybridTimestamp(milliseconds: 10))
    #expect(clock.tick(wall: 1_000) == HybridTimestamp(milliseconds: 5_000, counter: 9))
  }

  @Test("milliseconds stay within 48 bits")
  func bounds() {
    #expect(HybridTimestamp(milliseconds: -1) == .zero)
    #expect(HybridTimestamp(milliseconds: .max).milliseconds == 0xFFFF_FFFF_FFFF)
    #expect(HybridTimestamp(rawValue: .max).next.rawValue == .max)
  }

  @Test("a timestamp is encoded as sixteen hexadecimal digits")
  func text() {
    let time = HybridTimestamp(milliseconds: 0x0192_F0C1_2233, counter: 0x0A)
    #expect(time.description == "0192f0c12233000a")
    #expect(HybridTimestamp.zero.description == "0000000000000000")
  }

  @Test("the later write wins; at equal times the greater device wins")
  func resolution() {
    let table: [(existing: Stamp, incoming: Stamp, winner: Resolution)] = [
      (.at(1, 1), .at(2, 1), .incoming), (.at(2, 1), .at(1, 9), .existing),
      (.at(1, 1), .at(1, 2), .incoming), (.at(1, 2), .at(1, 1), .existing),
      (.at(1, 1), .at(1, 1), .incoming),
    ]
    for row in table {
      #expect(Resolution.resolve(existing: row.existing, incoming: row.incoming) == row.winner)
    }
  }
}
