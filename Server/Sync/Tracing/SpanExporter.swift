import Synchronization

/// Sends spans to a collector in the background. Nothing waits for it: if the queue is full, spans
/// are dropped.
package final class SpanExporter: Sendable {
  /// The services for an exporter.
  package struct Surroundings: Sendable {
    /// Time since some moment; never goes back.
    package var uptime: @Sendable () -> Duration
    package var random: @Sendable () -> UInt64
    package var sleep: @Sendable (Duration) async throws -> Void
    /// Sends one message to the collector.
    package var post: @Sendable ([UInt8]) async -> ExportResult
    /// Gets changes of the collector's state.
    package var notice: @Sendable (ExportQueue.Notice) -> Void

    package init(
      uptime: @escaping @Sendable () -> Duration, random: @escaping @Sendable () -> UInt64,
      sleep: @escaping @Sendable (Duration) async throws -> Void,
      post: @escaping @Sendable ([UInt8]) async -> ExportResult,
      notice: @escaping @Sendable (ExportQueue.Notice) -> Void
    ) {
      self.uptime = uptime
      self.random = random
      self.sleep = sleep
      self.post = post
      self.notice = notice
    }
  }

  /// The time between two looks at the queue.
  private static let tick = Duration.milliseconds(200)

  private let message: TraceMessage
  private let surroundings: Surroundings
  private let queue: Mutex<ExportQueue>

  package init(
    _ message: TraceMessage, bounds: ExportQueue.Bounds = ExportQueue.Bounds(),
    surroundings: Surroundings
  ) {
    self.message = message
    self.surroundings = surroundings
    queue = Mutex(ExportQueue(bounds: bounds))
  }

  package var counts: ExportQueue.Counts { queue.withLock(\.counts) }

  /// Spans in the queue or under way.
  package var waitingCount: Int { queue.withLock(\.count) }

  func add(_ spans: [Span]) {
    let now = surroundings.uptime()
    queue.withLock { $0.add(spans, now: now) }
  }

  func drop(_ count: Int) { queue.withLock { $0.drop(count) } }

  /// Sends spans until ``close()`` and the end of the queue, or until the task is cancelled.
  package func run() async {
    while !Task.isCancelled, !queue.withLock(\.isOver) {
      guard let batch = queue.withLock({ $0.dequeue(now: surroundings.uptime()) }) else {
        try? await surroundings.sleep(Self.tick)
        continue
      }
      let result = await surroundings.post(message.encoded(batch))
      let (now, random) = (surroundings.uptime(), surroundings.random())
      if let notice = queue.withLock({ $0.finish(result, now: now, random: random) }) {
        surroundings.notice(notice)
      }
    }
  }

  /// Sends the spans in the queue, once, and accepts no more. ``run()`` ends.
  package func close() { queue.withLock { $0.close() } }
}
