import Synchronization

/// The server's log: JSON lines at or above a level, which copies share.
package struct ServiceLog: Sendable {
  private final class Threshold: Sendable {
    let rank: Atomic<Int>
    let sampler = Mutex(LogSampler())

    init(_ level: LogLevel) { rank = Atomic(level.rank) }
  }

  private let threshold: Threshold
  private let sink: any LogSink
  private let clock: ServiceClock

  /// - Parameter level: Less important lines are omitted.
  package init(level: LogLevel, sink: any LogSink, clock: ServiceClock) {
    threshold = Threshold(level)
    self.sink = sink
    self.clock = clock
  }

  /// Omits lines less important than this level from now on.
  package func setLevel(_ level: LogLevel) {
    threshold.rank.store(level.rank, ordering: .relaxed)
  }

  /// Lines dropped because of a slow reader.
  var droppedLines: Int { sink.droppedLines }

  /// Lines of strangers and of rejected requests omitted because of their number.
  var leftOutLines: Int { threshold.sampler.withLock { $0.leftOut } }

  func write(_ entry: RequestEntry) {
    guard writes(entry.level) else { return }
    guard entry.isCheap else { return sink.write(entry.line()) }
    guard case .write(let leftOut) = decide(entry.remote, entry.kind) else { return }
    sink.write(entry.line(leftOut: leftOut))
  }

  /// Writes a line about a request refused before it was read.
  func write(refused detail: String, kind: String, remote: String) {
    guard writes(.info), case .write(let leftOut) = decide(remote, kind) else { return }
    var line = LogLine(.info, "request refused before reading", wall: clock.wall())
    line.add("detail", detail)
    line.add("remote", remote)
    if leftOut > 0 { line.add("leftOut", leftOut) }
    sink.write(line.finish())
  }

  /// Writes how many lines were left out since the last call, if there were any.
  package func reportLeftOut() {
    let count = threshold.sampler.withLock { $0.report() }
    guard count > 0, writes(.info) else { return }
    var line = LogLine(
      .info, "lines of strangers and of rejected requests left out", wall: clock.wall())
    line.add("leftOut", count)
    sink.write(line.finish())
  }

  private func decide(_ remote: String, _ kind: String) -> LogSampler.Verdict {
    let client = ListenAddress.network(of: remote) ?? remote
    let now = clock.uptime()
    return threshold.sampler.withLock { $0.decide(client: client, kind: kind, now: now) }
  }

  /// Writes a line without a request.
  /// - Parameter message: JSON text already, so no quotes in it.
  package func write(_ level: LogLevel, _ message: StaticString, detail: String? = nil) {
    guard writes(level) else { return }
    var line = LogLine(level, message, wall: clock.wall())
    line.add("detail", detail)
    sink.write(line.finish())
  }

  /// Writes a line for a failed call of the store.
  func write(_ error: StoreError) {
    switch error {
    case .unavailable(let why): write(.error, "the store cannot be reached", detail: why)
    case .busy(let why): write(.warning, "the store is busy", detail: why)
    case .needsMemory: write(.warning, "a call of the store needs more memory")
    case .readOnly(let why): write(.error, "the store is read-only", detail: why)
    case .failed(let why): write(.error, "the store failed", detail: why)
    }
  }

  /// Returns when all lines have left the process, or cannot.
  package func flush() { sink.flush() }

  private func writes(_ level: LogLevel) -> Bool {
    level.rank <= threshold.rank.load(ordering: .relaxed)
  }
}
