import FerryPostgres

/// The decision when a copy is compared with its view; pure.
struct ViewSchedule: Sendable, Equatable {
  /// The pause between two looks at the statistics.
  static let lookPause = Duration.seconds(2)
  /// The longest time between two comparisons: no statistics show changes of a foreign table, or of a
  /// function's result.
  static let restMax = Duration.seconds(300)
  /// The time between two comparisons while they fail: no statistics show a granted right.
  static let retryPause = Duration.seconds(5)
  /// Comparisons take one part of this many of the time, at most.
  static let shareMax = 10
  /// The longest time of one statement of a comparison. A program's ALTER TABLE waits as long.
  static let durationMax = Duration.seconds(30)

  /// The statement to limit the others of a transaction.
  static let limit = "SET LOCAL statement_timeout = \(durationMax.components.seconds * 1_000)"

  private var state: String?
  private var begun: ContinuousClock.Instant?
  private var duration = Duration.zero
  private var hasFailed = false

  init() {}

  /// Returns `true` if a comparison is due.
  ///
  /// - Parameter state: changes with the tables below the view.
  func isDue(_ state: String, at now: ContinuousClock.Instant) -> Bool {
    guard let begun else { return true }
    let age = now - begun
    if age < duration * Self.shareMax { return false }
    return state != self.state || age >= (hasFailed ? Self.retryPause : Self.restMax)
  }

  /// Records a comparison. The state was read before: a write in between is compared again.
  mutating func record(
    _ state: String, from begun: ContinuousClock.Instant, to ended: ContinuousClock.Instant,
    hasFailed: Bool
  ) {
    (self.state, self.begun, duration) = (state, begun, ended - begun)
    self.hasFailed = hasFailed
  }

  /// Returns the reason of a failed comparison that lasts until a person changes something; `nil` for
  /// a passing one, such as a program's lock or a lost connection.
  static func reason(of error: any Error, after duration: Duration) -> String? {
    if let fault = error as? MirrorFault { return fault.description }
    guard let error = error as? PostgresError, error.kind == .server else { return nil }
    switch error.sqlState {
    // PostgreSQL has one code for its time limit and for an administrator's cancel.
    case "57014":
      return duration >= durationMax
        ? "a comparison takes longer than \(durationMax.components.seconds) seconds" : nil
    // A materialized view without rows yet.
    case "55000": return error.message
    default: return error.isPassing ? nil : error.message
    }
  }
}

/// Rows of a view whose key identifies no single row: they do not travel.
struct AmbiguousRows: Sendable, Equatable {
  /// The number of such keys.
  var keys: Int64
  /// The first such key, and the number of its rows.
  var first: [String?]
  var rows: Int64

  /// The reason, for people.
  var reason: String {
    let key = first.map { $0 ?? "NULL" }.joined(separator: ", ")
    let others = keys > 1 ? ", and \((keys - 1).counted("other key"))" : ""
    let fault = first.contains(nil) ? "rows without a key" : "several rows of one key"
    return "\(fault) do not travel: \(rows.grouped) with the key \(key)\(others)"
  }
}
