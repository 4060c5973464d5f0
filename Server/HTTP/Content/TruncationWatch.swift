@preconcurrency import Dispatch
import Synchronization

/// A watch that cuts off answers with a file shorter than promised.
///
/// libmicrohttpd takes the end of the file in sendfile(2) for a full socket, and would wait until
/// the connection's idle timeout. No timer runs while no file is being sent.
final class TruncationWatch: Sendable {
  private struct State {
    var sendings: [ObjectIdentifier: (exchange: Exchange, content: FileContent)] = [:]
    var isTicking = false
  }

  private static let period = DispatchTimeInterval.seconds(1)
  private static let queue = DispatchQueue(label: "ferry.http.truncation-watch")

  private let state = Mutex(State())

  /// Records this content as sent by the exchange from now on.
  func begin(_ exchange: Exchange, _ content: FileContent) {
    let isFirst = state.withLock { state in
      state.sendings[ObjectIdentifier(exchange)] = (exchange, content)
      defer { state.isTicking = true }
      return !state.isTicking
    }
    if isFirst { scheduleTick() }
  }

  /// Records the end of the exchange.
  func end(_ exchange: Exchange) {
    // The removed entry is released after the lock.
    _ = state.withLock { $0.sendings.removeValue(forKey: ObjectIdentifier(exchange)) }
  }

  private func scheduleTick() {
    Self.queue.asyncAfter(deadline: .now() + Self.period) { [weak self] in self?.tick() }
  }

  private func tick() {
    let sendings = state.withLock { state in
      state.isTicking = !state.sendings.isEmpty
      return Array(state.sendings.values)
    }
    guard !sendings.isEmpty else { return }
    for (exchange, content) in sendings where !content.isComplete { exchange.disconnect() }
    scheduleTick()
  }
}
