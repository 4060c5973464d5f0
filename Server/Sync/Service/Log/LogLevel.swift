/// How much a log line matters.
package enum LogLevel: String, Sendable, CaseIterable, Comparable {
  /// What somebody has to look at: the store failed, an answer was 5xx.
  case error
  /// What may need a look.
  case warning
  /// One line a request, starts and stops.
  case info
  /// Health checks and scrapes too.
  case debug

  private var rank: Int {
    switch self {
    case .error: 0
    case .warning: 1
    case .info: 2
    case .debug: 3
    }
  }

  /// The more it matters, the smaller.
  package static func < (left: LogLevel, right: LogLevel) -> Bool { left.rank < right.rank }
}
