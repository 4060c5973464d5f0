import FerryPostgres
import FerryProtocol

/// The decision when a copy is compared with its view; pure.
struct ViewSchedule: Sendable, Equatable {
  /// The pause between two looks at the statistics.
  static let lookPause = Duration.seconds(2)
  /// The longest time between two comparisons of one view: no statistics show changes of a foreign
  /// table, or of a function's result.
  static let restMax = Duration.seconds(300)
  /// The time between two comparisons while they fail: no statistics show a granted right.
  static let retryPause = Duration.seconds(5)
  /// The comparisons of all views take one part of this many of the time, at most.
  static let shareMax = 10
  /// The longest time of one statement of a comparison. A program's ALTER TABLE waits as long.
  static let durationMax = Duration.seconds(30)
  /// A passing failure, such as a program's lock, becomes a fault with this try in a row.
  static let passingTriesMax = 5

  /// The statement to limit the others of a transaction.
  static let limit = "SET LOCAL statement_timeout = \(durationMax.components.seconds * 1_000)"

  private var state: String?
  private var started: ContinuousClock.Instant?
  private var begun: ContinuousClock.Instant?
  private var duration = Duration.zero
  private var hasFailed = false
  /// Passing failures in a row.
  private var passingTries = 0

  init() {}

  /// Returns `true` if a comparison is due.
  ///
  /// - Parameters:
  ///   - state: changes with the tables below the view.
  ///   - count: the number of views. Each has an equal part of the time for comparisons, so a slow
  ///     one delays no other one for long.
  func isDue(_ state: String, at now: ContinuousClock.Instant, among count: Int = 1) -> Bool {
    guard let begun else { return true }
    let age = now - begun
    if age < min(duration * Self.shareMax, Self.restMax) * count { return false }
    return state != self.state || age >= (hasFailed ? Self.retryPause : Self.restMax)
  }

  /// Returns the views in the order of their comparisons: first those without one, then the others by
  /// age.
  static func order(_ views: [Name], _ schedules: [Name: ViewSchedule]) -> [Name] {
    let aged = views.enumerated().map { ($0.offset, schedules[$0.element]?.begun, $0.element) }
    return aged.sorted { one, other in
      switch (one.1, other.1) {
      case (let first?, let second?) where first != second: first < second
      case (nil, .some): true
      case (.some, nil): false
      default: one.0 < other.0
      }
    }.map(\.2)
  }

  /// Begins the measured part of a comparison: the waits for a connection and for locks are over.
  mutating func begin(at now: ContinuousClock.Instant) { started = now }

  /// Records a comparison. The state was read before: a write in between is compared again.
  mutating func record(_ state: String, at ended: ContinuousClock.Instant) {
    end(state, at: ended)
    (hasFailed, passingTries) = (false, 0)
  }

  /// Records a failed comparison.
  ///
  /// - Returns: the reason of a failure that lasts; `nil` for a cancelled task, and for the first
  ///   passing ones.
  mutating func record(
    _ error: any Error, _ state: String, at ended: ContinuousClock.Instant
  ) -> String? {
    end(state, at: ended)
    hasFailed = true
    if error is CancellationError { return nil }
    if let reason = lastingReason(of: error) {
      passingTries = 0
      return reason
    }
    passingTries += 1
    guard passingTries >= Self.passingTriesMax else { return nil }
    return (error as? PostgresError)?.message ?? "\(error)"
  }

  private mutating func end(_ state: String, at ended: ContinuousClock.Instant) {
    (self.state, begun, duration) = (state, started ?? ended, ended - (started ?? ended))
    started = nil
  }

  /// Returns the reason of a failure until a person changes something; `nil` for a passing one, such as
  /// a program's lock or a lost connection.
  private func lastingReason(of error: any Error) -> String? {
    if let fault = error as? MirrorFault { return fault.description }
    guard let error = error as? PostgresError, error.kind == .server else { return nil }
    switch error.sqlState {
    // PostgreSQL has one code for its time limit and for an administrator's cancel.
    case "57014":
      return duration >= Self.durationMax
        ? "a comparison takes longer than \(Self.durationMax.components.seconds) seconds" : nil
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

/// Rows of a view that no device can hold: they do not travel.
struct UnfitRows: Sendable, Equatable {
  var rows: Int64
  /// The unfit part of the first row: the key, or a column.
  var fault: String
  /// The beginning of the key of the first row.
  var first: [String?]

  /// The reason, for people.
  var reason: String {
    let key = first.map { $0 ?? "NULL" }.joined(separator: ", ")
    let part = fault == "the key" ? "the key \(key)" : "\(fault) of the row with the key \(key)"
    let others = rows > 1 ? ", and \((rows - 1).counted("other row"))" : ""
    return "rows that no device can hold do not travel: \(part)\(others)"
  }
}
