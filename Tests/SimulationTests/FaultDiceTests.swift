import FerrySimulation
import FerryTestSupport
import Testing

/// Faults by chance are decided by the seed alone.
@Suite(.hangLimit)
struct FaultDiceTests {
  private static func rolls(
    _ dice: FaultDice, _ kind: ChanceFault, at site: String = "device-00/up", count: Int = 2_000
  ) -> [Bool] {
    (0..<count).map { _ in dice.roll(kind, at: site) }
  }

  @Test("faults occur as often as requested", arguments: [1_000, 50_000, 500_000])
  func ratios(_ ratio: Int) {
    let dice = FaultDice(seed: 1, ratios: [.drop: ratio])
    let count = Self.rolls(dice, .drop, count: 200_000).count { $0 }
    let expected = ratio / 5
    #expect((expected * 7 / 10...expected * 13 / 10).contains(count), "\(count) of \(expected)")
    #expect(dice.happened.count == count)
  }

  @Test("a fault with chance 0 never occurs, and one with chance 1 always does")
  func extremes() {
    let dice = FaultDice(seed: 1, ratios: [.reset: 1_000_000, .slow: 0])
    #expect(Self.rolls(dice, .reset).allSatisfy { $0 })
    #expect(!Self.rolls(dice, .slow).contains(true))
    #expect(!Self.rolls(dice, .drop).contains(true))
  }

  @Test("one kind of fault, and one site, does not influence another")
  func independence() {
    let alone = Self.rolls(FaultDice(seed: 9, ratios: [.drop: 100_000]), .drop)
    let dice = FaultDice(seed: 9, ratios: [.drop: 100_000, .corrupt: 300_000])
    let among = (0..<2_000).map { _ in
      _ = dice.roll(.corrupt, at: "device-00/up")
      _ = dice.roll(.drop, at: "device-01/up")
      return dice.roll(.drop, at: "device-00/up")
    }
    #expect(alone == among)
    #expect(alone != Self.rolls(FaultDice(seed: 9, ratios: [.drop: 100_000]), .drop, at: "other"))
    #expect(alone != Self.rolls(FaultDice(seed: 10, ratios: [.drop: 100_000]), .drop))
  }

  @Test("recorded faults occur again if they are allowed, and no others")
  func replay() {
    let ratios: [ChanceFault: Int] = [.drop: 100_000, .stall: 100_000]
    func run(_ allowed: Set<FaultName>?) -> (FaultDice, [Bool]) {
      let dice = FaultDice(seed: 3, ratios: ratios, allowed: allowed)
      return (dice, Self.rolls(dice, .drop) + Self.rolls(dice, .stall))
    }
    let (first, rolls) = run(nil)
    let (again, rollsAgain) = run(Set(first.happened))
    #expect(rolls == rollsAgain)
    #expect(first.happened == again.happened)
    let half = first.happened.enumerated().filter { $0.offset % 2 == 0 }.map(\.element)
    #expect(run(Set(half)).0.happened == half)
    #expect(run([]).0.happened.isEmpty)
  }

  @Test("while the simulation itself reads, no fault occurs and none is counted")
  func quietly() {
    let ratios: [ChanceFault: Int] = [.diskFull: 300_000]
    let plain = Self.rolls(FaultDice(seed: 2, ratios: ratios), .diskFull, count: 50)
    let dice = FaultDice(seed: 2, ratios: ratios)
    let looked = (0..<50).map { _ in
      #expect(!dice.quietly { Self.rolls(dice, .diskFull, count: 9) }.contains(true))
      return dice.roll(.diskFull, at: "device-00/up")
    }
    #expect(plain == looked)
    #expect(dice.isActive)
  }
}
