import Foundation
import Synchronization

/// The treatment of all passing bytes in a `TCPProxy`, for partitions and slow links. Traps are for
/// single exchanges.
package struct LinkConditions: Sendable, Equatable {
  /// The fate of bytes in one direction, and of the end of this direction.
  package enum Passage: Sendable, Equatable {
    case open
    /// They arrive later; later bytes wait as well.
    case delayed(Duration)
    /// They wait until the way is open again, as TCP repeats the bytes dropped by a partition. The
    /// other side does not even see a connection's end.
    case stalled
  }

  /// From clients to the server.
  package var requests: Passage
  /// From the server to clients.
  package var answers: Passage

  /// Creates conditions; by default all bytes pass.
  package init(requests: Passage = .open, answers: Passage = .open) {
    self.requests = requests
    self.answers = answers
  }

  /// Returns both at once: the worse of the two each way.
  package func joined(with other: LinkConditions) -> LinkConditions {
    LinkConditions(
      requests: Self.worse(requests, other.requests), answers: Self.worse(answers, other.answers))
  }

  private static func worse(_ one: Passage, _ other: Passage) -> Passage {
    switch (one, other) {
    case (.stalled, _), (_, .stalled): .stalled
    case (.delayed(let first), .delayed(let second)): .delayed(max(first, second))
    case (.open, let passage), (let passage, .open): passage
    }
  }
}

/// Where the threads of a proxy's connections wait while the way is not open.
final class LinkGate: Sendable {
  private struct State {
    var conditions = LinkConditions()
    var isGone = false
    var waiting: [DispatchSemaphore] = []
  }

  private let state = Mutex(State())

  /// Changes the conditions; waiting threads check them again.
  func set(_ conditions: LinkConditions) { change { $0.conditions = conditions } }

  /// Ends the gate with the proxy: no thread waits any more.
  func remove() { change { $0.isGone = true } }

  /// Blocks until bytes may pass, or the end of a connection.
  func wait(_ direction: TCPProxy.Direction) {
    while true {
      let (passage, turn) = state.withLock { state in
        let passage =
          state.isGone
          ? .open
          : direction == .request ? state.conditions.requests : state.conditions.answers
        let turn = passage == .stalled ? DispatchSemaphore(value: 0) : nil
        if let turn { state.waiting.append(turn) }
        return (passage, turn)
      }
      switch passage {
      case .open: return
      case .delayed(let duration): return Thread.sleep(forTimeInterval: duration / .seconds(1))
      case .stalled: turn?.wait()
      }
    }
  }

  private func change(_ body: (inout State) -> Void) {
    let waiting = state.withLock { state in
      body(&state)
      defer { state.waiting = [] }
      return state.waiting
    }
    for turn in waiting { turn.signal() }
  }
}
