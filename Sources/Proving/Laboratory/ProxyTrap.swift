import Foundation
import Synchronization

/// A trap for bytes in a `TCPProxy`, with an action on them.
package final class ProxyTrap: Sendable {
  /// The effect at the trap's place in the stream.
  package enum Action: Sendable {
    /// None: the bytes pass, and then `sprung` returns.
    case tell
    /// These bytes and all later ones wait for `release` or `cut`.
    case hold
    /// These bytes and all later ones are dropped; the connection stays open.
    case drop
    /// The connection is closed to both sides.
    case cut
    /// The bytes pass later.
    case delay(Duration)
    /// The closure runs on the connection's thread before the bytes pass.
    case call(@Sendable () -> Void)
  }

  /// The awaited bytes; see `TCPProxy.trap`.
  struct Pattern: Sendable {
    var direction: TCPProxy.Direction
    var request: String
    var bytes: Int
    var skipping: Int
    var times: Int
  }

  /// One request with the response.
  struct Exchange: Sendable, Hashable {
    /// The connection's number.
    var link: Int
    var number = 0
    var requestLine = ""
  }

  private struct State {
    var seen: [Exchange] = []
    var done = Set<Exchange>()
    var bytes = 0
    var timesLeft: Int
    /// True if held bytes pass, once decided.
    var goesOn: Bool?
    var held: [DispatchSemaphore] = []
  }

  let action: Action
  private let pattern: Pattern
  private let state: Mutex<State>
  private let events: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  init(_ pattern: Pattern, _ action: Action) {
    self.pattern = pattern
    self.action = action
    state = Mutex(State(timesLeft: pattern.times))
    (events, continuation) = AsyncStream.makeStream()
  }

  /// Waits until it has sprung; called again, until it has sprung again.
  ///
  /// - Parameter process: the process behind the proxy. The end of it ends the wait.
  package func sprung(
    from process: (any CapturedProcess)? = nil, within limit: Duration = .hangLimit
  ) async throws {
    if let process {
      try await eventually("the trap for '\(pattern.request)'", from: process) { self.hasSprung }
    }
    let hasSprung = await withTaskGroup(of: Bool.self) { group in
      group.addTask { [events] in
        for await _ in events { return true }
        return false
      }
      group.addTask {
        try? await Task.sleep(for: limit)
        return false
      }
      defer { group.cancelAll() }
      return await group.next() ?? false
    }
    guard hasSprung else {
      throw TestSupportError(
        "the trap for \(pattern.direction) of '\(pattern.request)' did not spring in \(limit)")
    }
  }

  /// True if it has sprung already.
  package var hasSprung: Bool { state.withLock { !$0.done.isEmpty } }

  /// Releases held bytes, and disarms the trap.
  package func release() { resolve(goesOn: true) }

  /// Closes the held connections, and disarms the trap.
  package func cut() { resolve(goesOn: false) }

  // MARK: On the connections' threads

  /// Returns how many of `count` bytes pass before it springs; `nil` when it does not.
  func consider(_ direction: TCPProxy.Direction, _ exchange: Exchange, count: Int) -> Int? {
    guard direction == pattern.direction,
      pattern.request.isEmpty || exchange.requestLine.contains(pattern.request)
    else { return nil }
    return state.withLock { state in
      guard state.timesLeft > 0, !state.done.contains(exchange) else { return nil }
      if !state.seen.contains(exchange) { state.seen.append(exchange) }
      guard let index = state.seen.firstIndex(of: exchange), index >= pattern.skipping
      else { return nil }
      let offset = pattern.bytes - state.bytes
      guard offset < count else {
        state.bytes += count
        return nil
      }
      state.bytes = 0
      state.timesLeft -= 1
      state.done.insert(exchange)
      return offset
    }
  }

  func signal() { continuation.yield() }

  /// Blocks while the bytes are held. Returns whether they pass.
  func waitUntilReleased() -> Bool {
    let gate = DispatchSemaphore(value: 0)
    let isHeld = state.withLock { state in
      if state.goesOn == nil { state.held.append(gate) }
      return state.goesOn == nil
    }
    signal()
    if isHeld { gate.wait() }
    return state.withLock { $0.goesOn ?? false }
  }

  private func resolve(goesOn: Bool) {
    let held = state.withLock { state in
      state.timesLeft = 0
      if state.goesOn == nil { state.goesOn = goesOn }
      defer { state.held = [] }
      return state.held
    }
    for gate in held { gate.signal() }
  }
}
