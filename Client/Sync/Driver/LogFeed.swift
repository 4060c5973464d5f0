import FerryExecutors
import Synchronization

/// Delivers the entries of a replica's log to the program's closure, one at a time, in the order of
/// the log, on a thread of its own. It never makes the replica wait.
final class LogFeed: Sendable {
  /// The most entries that wait for the closure; the oldest are left out beyond.
  static let waitingMax = 1_000

  private let entries: AsyncStream<LogEntry>.Continuation
  /// The number of the last entry that was delivered, or that is older than this feed.
  private let last: Mutex<Int64>

  /// - Parameters:
  ///   - last: the number of the newest entry that is not delivered.
  ///   - executor: runs the closure, which may block.
  init(
    after last: Int64, on executor: any WorkExecutor,
    to sink: @escaping @Sendable (LogEntry) -> Void
  ) {
    self.last = Mutex(last)
    let stream: AsyncStream<LogEntry>
    (stream, entries) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(Self.waitingMax))
    Task {
      for await entry in stream {
        // The closure cannot fail.
        try? await executor.run { sink(entry) }
      }
    }
  }

  deinit { entries.finish() }

  /// Delivers an entry that the log does not have.
  func deliver(_ entry: LogEntry) { entries.yield(entry) }

  /// Delivers the entries that the log has got since the last call.
  func follow(_ file: ReplicaFile) {
    // An unreadable log fails the replica's own work; the next call finds the entries.
    guard let new = try? file.log(after: last.withLock { $0 }), let newest = new.last else {
      return
    }
    last.withLock { $0 = newest.number }
    for entry in new { entries.yield(entry.entry) }
  }
}

extension ReplicaFile {
  /// The number of the newest entry of the log; 0 if there is none.
  func newestLogNumber() throws -> Int64 {
    try connection.first("SELECT coalesce(max(seq), 0) FROM ferry_log") { $0.int64(0) } ?? 0
  }

  /// Returns the entries after a number, oldest first.
  fileprivate func log(after number: Int64) throws -> [(number: Int64, entry: LogEntry)] {
    try connection.rows(
      "SELECT seq, at, event, detail FROM ferry_log WHERE seq > ? ORDER BY seq", number
    ) { row in
      (row.int64(0), LogEntry(at: row.int64(1), event: row.text(2), detail: row.text(3)))
    }
  }
}
