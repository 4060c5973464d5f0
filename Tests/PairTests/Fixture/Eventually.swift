import FerryTestSupport
import Testing

/// Asks again and again until there is a result, for events of other processes.
///
/// - Throws: An error with `what`, if there is no result in time.
@discardableResult
func eventually<Answer: Sendable>(
  _ what: String, within limit: Duration = .hangLimit, _ probe: () async throws -> Answer?
) async throws -> Answer {
  let deadline = ContinuousClock.now + limit
  while true {
    if let answer = try await probe() { return answer }
    guard ContinuousClock.now < deadline else {
      throw TestSupportError("gave up waiting for \(what) after \(limit)")
    }
    try await Task.sleep(for: .milliseconds(10))
  }
}

/// Waits until something holds.
func eventually(
  _ what: String, within limit: Duration = .hangLimit, holds: () async throws -> Bool
) async throws {
  try await eventually(what, within: limit) { try await holds() ? true : nil }
}

/// Random numbers that are the same for the same seed: SplitMix64 (Steele, Lea and Flood, 2014).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
