import FerryPlatform
import Foundation
import Synchronization

/// The threads for checks of the signatures of JSON Web Tokens. A check takes 30 to 200 µs of a
/// processor.
///
/// The checks wait in turns of the claimed keys, then of the senders' addresses, then of the
/// claimed subjects. So forged tokens delay a good one by at most one check of each of their flows.
/// If too many wait, the newest check of the largest flow is dropped. All other requests go on
/// beside, since the threads do nothing else.
final class SignatureChecks: Sendable {
  /// Counts since the start.
  struct Counts: Sendable, Equatable {
    var valid = 0
    var forged = 0
    /// Refused without a check: malformed tokens, and those with wrong claims or an unknown key.
    var unchecked = 0
    /// Given up because too many waited.
    var givenUp = 0
  }

  /// The most checks in the queue.
  static let waitingMax = 1_024

  private struct State {
    /// Checks under way on each thread.
    var load: [Int]
    var counts = Counts()
  }

  private let threads: [ThreadExecutor]
  private let turns: FairGate
  private let state: Mutex<State>

  /// - Parameter threads: By default one for four processors.
  init(threads count: Int = max(1, ProcessInfo.processInfo.activeProcessorCount / 4)) {
    threads = (0..<count).map { _ in ThreadExecutor(name: "ferry-signature") }
    // One check waits at each thread, so the thread has no pause.
    turns = FairGate(FlowLimits(all: 2 * count), waitingMax: Self.waitingMax)
    state = Mutex(State(load: [Int](repeating: 0, count: count)))
  }

  var counts: Counts { state.withLock { $0.counts } }

  /// Checks in the queue for their turns.
  var waitingCount: Int { turns.waitingCount }

  func countUnchecked() { state.withLock { $0.counts.unchecked += 1 } }

  /// Runs a check when it is the flow's turn. Returns `nil` if too many wait.
  ///
  /// - Parameter path: The claimed key, the sender's address and the claimed subject.
  func run(
    _ path: [String], _ check: @escaping @Sendable () -> SignatureKeys.Verdict
  ) async -> SignatureKeys.Verdict? {
    guard await turns.enter(path) else {
      state.withLock { $0.counts.givenUp += 1 }
      return nil
    }
    defer { turns.leave(path) }
    let index = state.withLock { state in
      let least = state.load.indices.min { (state.load[$0], $0) < (state.load[$1], $1) } ?? 0
      state.load[least] += 1
      return least
    }
    // The body throws nothing.
    let verdict = (try? await threads[index].run(check)) ?? .forged
    state.withLock { state in
      state.load[index] -= 1
      if verdict == .valid { state.counts.valid += 1 } else { state.counts.forged += 1 }
    }
    return verdict
  }
}
