import FerryProtocol

/// Decides about a request after a failure; pure.
///
/// Temporary failures are repeated, with two exceptions: the server requests a longer pause than a sync
/// waits, or the request exceeded the time limit. Then the user has waited long enough, and a watch retries
/// anyway.
struct RequestRetry: Equatable {
  /// A failure of the request.
  struct Failure: Equatable {
    let error: ReplicaError
    /// The pause requested by the server.
    var pause: Duration?
    /// True if the request exceeded the time limit.
    var isTimedOut = false
    /// True if another program answered instead of a Ferry server.
    var isForeign = false
  }

  /// The step after a failure.
  enum Step: Equatable {
    case retry(after: Duration)
    /// Ends with the failure, and with the pause requested by the server.
    case fail
    /// Ends with the other program's answer: it may concern the size or the content of the request.
    case failForeign
  }

  /// The longest pause that a sync waits.
  let pauseMax: Duration
  private var failures = 0

  init(pauseMax: Duration) { self.pauseMax = pauseMax }

  /// Returns the step after a failure.
  ///
  /// - Parameter delay: returns the pause after this many failures in a row; `nil` after the last attempt.
  mutating func handle(_ failure: Failure, delay: (_ failures: Int) -> Duration?) -> Step {
    failures += 1
    if let pause = failure.pause, pause > pauseMax { return .fail }
    guard failure.error.isTransient else { return failure.isForeign ? .failForeign : .fail }
    guard !failure.isTimedOut, let delay = delay(failures) else { return .fail }
    return .retry(after: delay)
  }
}
