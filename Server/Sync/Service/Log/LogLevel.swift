/// The importance of a log line.
package enum LogLevel: String, Sendable, CaseIterable, Comparable {
  /// A failure that needs a look: the store failed, or an answer was 5xx.
  case error
  /// An event that may need a look.
  case warning
  /// One line a request, starts and stops.
  case info
  /// Health checks and scrapes too.
  case debug

  /// 0 for the most important level.
  var rank: Int {
    switch self {
    case .error: 0
    case .warning: 1
    case .info: 2
    case .debug: 3
    }
  }

  /// Orders levels: a more important level is smaller.
  package static func < (left: LogLevel, right: LogLevel) -> Bool { left.rank < right.rank }
}
