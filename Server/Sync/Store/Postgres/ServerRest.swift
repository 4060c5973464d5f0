import FerryPlatform
import FerryPostgres

/// The pauses of a server with a substitute, such as a standby or a worker; pure.
///
/// After a failure the other server does the work. When the pause is over, one caller tries the
/// server; the others use the other one until it succeeds.
struct ServerRest {
  static let length = Duration.seconds(5)

  /// One use of the server.
  struct Attempt {
    /// Failures of the server before it.
    fileprivate let failures: Int
  }

  /// The meaning of an error for the server and for the work.
  enum Effect {
    /// It is about the work.
    case none
    /// The other server may do this work; the server can do other work.
    case passOn
    /// The other server may do this work; the server rests.
    case rest
  }

  private var end: ContinuousClock.Instant?
  private var failures = 0

  /// Returns a use of the server; `nil` if it rests.
  mutating func begin(now: ContinuousClock.Instant) -> Attempt? {
    if let end {
      guard end <= now else { return nil }
      self.end = now + Self.length
    }
    return Attempt(failures: failures)
  }

  /// Ends the rest, unless the server has failed since the attempt began.
  mutating func succeeded(_ attempt: Attempt) {
    if attempt.failures == failures { end = nil }
  }

  mutating func failed(now: ContinuousClock.Instant) {
    failures += 1
    end = now + Self.length
  }

  /// Connections, rights, missing tables and missing resources are about the server. A server of
  /// Citus passes on the errors of another one. These are errors of classes 08 and 57P, since its
  /// own ones end the connection, and others with the place in their context.
  static func effect(of error: PostgresError) -> Effect {
    switch error.kind {
    case .connectionFailed, .connectionLost, .noAnswer, .readOnly: return .rest
    case .invalidURL, .unexpectedResult, .poolClosed, .busy: return .none
    case .server:
      let state = error.sqlState ?? ""
      if ["08", "57P"].contains(where: { state.begins(with: $0) }) { return .passOn }
      guard ["42", "53"].contains(where: { state.begins(with: $0) }) else { return .none }
      // No code: Citus passes on the state of the other server, and has no translations.
      return error.context?.has("while executing command on ") == true ? .passOn : .rest
    }
  }
}
