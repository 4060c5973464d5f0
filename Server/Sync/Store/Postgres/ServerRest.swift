import FerryPostgres

/// The pauses of a server whose work another one can do, such as a standby or a worker; pure.
///
/// After a failure the other server does its work. When the pause is over, one caller tries the
/// server; the others go on with the other one until it succeeds.
struct ServerRest {
  static let length = Duration.seconds(5)

  private var end: ContinuousClock.Instant?

  /// Returns whether a caller may use the server.
  mutating func mayUse(now: ContinuousClock.Instant) -> Bool {
    guard let end else { return true }
    guard end <= now else { return false }
    self.end = now + Self.length
    return true
  }

  mutating func succeeded() { end = nil }

  mutating func failed(now: ContinuousClock.Instant) { end = now + Self.length }

  /// Returns whether an error is about the server and not about the work: connections, rights,
  /// missing tables, missing resources, the end of a server.
  static func isFault(_ error: PostgresError) -> Bool {
    switch error.kind {
    case .connectionFailed, .connectionLost, .noAnswer, .readOnly, .busy: return true
    case .invalidURL, .unexpectedResult, .poolClosed: return false
    case .server:
      let state = error.sqlState ?? ""
      return ["08", "42", "53", "57P"].contains { state.hasPrefix($0) }
    }
  }
}
