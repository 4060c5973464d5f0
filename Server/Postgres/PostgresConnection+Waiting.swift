import CFerryPostgres
import Foundation

/// The time for which a connection waits for an answer, before the work is given up.
///
/// A hanging server (SIGSTOP, a frozen machine or disk) keeps the connections open: neither an
/// error nor TCP reports it.
struct PostgresPatience: Sendable {
  /// The longest silence in an answer; `nil` waits for ever.
  var limit: Duration?
  /// The silence before a check of the server, and the limit of this check.
  var doubt = Duration.seconds(2)
  /// Asks on another connection; `nil` assumes a living server.
  var pulse: PostgresPulse?
}

extension PostgresConnection {
  /// Runs work with statements that may be silent for long. A server without any answer is still
  /// given up, if the pool checks it.
  package func withoutAnswerLimit<Value>(
    _ body: (PostgresConnection) throws -> Value
  ) rethrows -> Value {
    let limit = patience.limit
    patience.limit = nil
    defer { patience.limit = limit }
    return try body(self)
  }

  /// Sends the rest of libpq's buffer, reading meanwhile.
  func flush() -> Bool {
    while true {
      switch PQflush(handle) {
      case 0: return true
      case 1:
        guard let ready = wait(for: POLLIN | POLLOUT) else { return false }
        let isReadable = ready & ~Int16(POLLOUT) != 0
        if isReadable && PQconsumeInput(handle) == 0 { return false }
      default: return false
      }
    }
  }

  /// Returns the next result; `nil` at the end of the results, and if the server was given up.
  func nextResult() -> OpaquePointer? {
    while PQisBusy(handle) != 0 {
      guard wait(for: POLLIN) != nil else { return nil }
      // The result contains the connection's error.
      if PQconsumeInput(handle) == 0 { break }
    }
    return PQgetResult(handle)
  }

  /// Waits until the socket can be read or written, and returns for which it is ready. Returns
  /// `nil` at the deadline: the connection is not to be used again.
  private func wait(for events: Int32) -> Int16? {
    let clock = ContinuousClock()
    let start = clock.now
    var doubt = start + patience.doubt
    while true {
      let end = patience.limit.map { start + $0 }
      let next = min(doubt, end ?? doubt)
      var descriptor = pollfd(fd: PQsocket(handle), events: Int16(events), revents: 0)
      if poll(&descriptor, 1, max(.zero, next - clock.now).wholeMilliseconds) > 0 {
        return descriptor.revents
      }
      let now = clock.now
      if let end, now >= end { return stopWaiting() }
      guard now >= doubt else { continue }
      if let pulse = patience.pulse, !pulse.beats(at: address) { return stopWaiting() }
      doubt = clock.now + patience.doubt
    }
  }

  private func stopWaiting() -> Int16? {
    (hasGivenUp, isStale) = (true, true)
    return nil
  }

  /// The server at the other end.
  private var address: PostgresAddress {
    func text(_ value: UnsafePointer<CChar>?) -> String { value.map { String(cString: $0) } ?? "" }
    return PostgresAddress(
      host: text(PQhost(handle)), address: text(PQhostaddr(handle)), port: text(PQport(handle)))
  }
}
