import FerryPlatform
import Synchronization

/// The turns of a group's mirrors: few of them work at the same time, with their files in memory. A
/// long turn counts no more, so no mirror holds up the others.
final class MirrorTurns: Sendable {
  /// Turns at the same time.
  private static let atOnce = 16
  /// The time after which a turn does not count any more.
  private static let longest = Duration.seconds(2)

  private let gate = FairGate(FlowLimits(all: atOnce), waitingMax: .max)

  /// Runs `body` once there is a free turn.
  func perform<Value>(_ body: () async throws -> Value) async rethrows -> Value {
    _ = await gate.enter([""])
    let turn = Turn(gate)
    let limit = Task {
      try? await Task.sleep(for: Self.longest)
      turn.end()
    }
    defer {
      limit.cancel()
      turn.end()
    }
    return try await body()
  }

  /// A turn that ends once.
  private final class Turn: Sendable {
    private let gate: FairGate
    private let hasEnded = Atomic(false)

    init(_ gate: FairGate) { self.gate = gate }

    func end() {
      if !hasEnded.exchange(true, ordering: .relaxed) { gate.leave([""]) }
    }
  }
}
