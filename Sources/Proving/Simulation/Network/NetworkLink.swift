import FerryConformance

/// The way between one device and the server.
// SAFETY: touched on the scheduler's thread only.
package final class NetworkLink: @unchecked Sendable {
  /// Which way a message goes.
  package enum Direction: String, Sendable {
    case up, down
  }

  package let device: String
  /// Partitions of each direction now; they may overlap.
  private var cuts: [Direction: Int] = [:]
  private var random: SeededRandom
  private let delayMin: Int64
  private let delayMax: Int64

  /// - Parameters: `delays` in milliseconds.
  package init(device: String, random: SeededRandom, delays: ClosedRange<Int>) {
    self.device = device
    self.random = random
    delayMin = Int64(delays.lowerBound) * 1_000
    delayMax = Int64(delays.upperBound) * 1_000
  }

  package func isCut(_ direction: Direction) -> Bool { cuts[direction, default: 0] > 0 }

  package func cut(_ direction: Direction) { cuts[direction, default: 0] += 1 }

  package func repair(_ direction: Direction) {
    cuts[direction] = max(0, cuts[direction, default: 0] - 1)
  }

  /// Repairs every cut.
  package func mendAll() { cuts = [:] }

  /// Returns the time of the next message, microseconds: mostly short, now and then long, so
  /// messages overtake each other.
  package func delay() -> Int64 {
    let span = Int(max(1, delayMax - delayMin))
    let isLong = random.chance(1, in: 5)
    return delayMin + Int64(random.below(isLong ? span : max(1, span / 8)))
  }

  /// Returns a pause of a slow reader, microseconds.
  package func longDelay() -> Int64 { 1_000_000 + Int64(random.below(20_000_000)) }

  /// Returns a number for choices about a message.
  package func choice(_ bound: Int) -> Int { random.below(bound) }
}
