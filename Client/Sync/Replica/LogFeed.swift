import FerryPlatform
import Synchronization

/// Delivers the entries of a replica's log to the program's closure, one at a time, in the order of
/// the log, on a separate thread. It never makes the replica wait.
final class LogFeed: Sendable {
  /// The most entries waiting for the closure; beyond it, the oldest are left out.
  static let waitingMax = 1_000

  private let entries: AsyncStream<LogEntry>.Continuation
  /// The number of the last entry delivered, or older than this feed.
  private let last: Mutex<Int64>

  /// - Parameters:
  ///   - last: the number of the newest entry that is not delivered.
  ///   - executor: runs the closure; it may block.
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

  /// Delivers an entry missing from the log.
  func deliver(_ entry: LogEntry) { entries.yield(entry) }

  /// Delivers the log's new entries since the last call.
  func publish(_ file: ReplicaFile) {
    // An unreadable log fails the replica's own work; the next call finds the entries.
    guard let new = try? file.log.entries(after: last.withLock { $0 }), let newest = new.last else {
      return
    }
    last.withLock { $0 = newest.number }
    for entry in new { entries.yield(entry.entry) }
  }
}
