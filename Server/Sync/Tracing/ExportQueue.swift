/// The answer of a collector to a batch of spans.
package enum ExportResult: Sendable, Equatable {
  /// - Parameter rejected: Spans not accepted by the collector.
  case accepted(rejected: Int)
  /// The same batch may succeed later.
  case failed(String, pause: Duration?)
  /// The batch can never succeed.
  case refused(String)
}

/// Spans on their way to a collector; pure. A number of them wait, and later ones are dropped and
/// counted. After a failure the same batch is sent again, with growing pauses.
package struct ExportQueue: Sendable {
  package struct Bounds: Sendable, Equatable {
    /// Spans in the queue, those under way included.
    package var waiting = 4_096
    /// Spans of one message.
    package var batch = 512
    /// The time for which a span waits for others.
    package var delay = Duration.seconds(1)
    /// The pause after the first failure; each further one doubles it.
    package var pauseBase = Duration.seconds(1)
    package var pauseMax = Duration.seconds(60)

    package init() {}
  }

  package struct Counts: Sendable, Equatable {
    /// Spans accepted by the collector.
    package var exported = 0
    /// Lost spans: the queue was full, or the collector refused them.
    package var dropped = 0
    /// Failed messages.
    package var failures = 0

    package init() {}
  }

  /// A change of the collector's state, for the log.
  package enum Notice: Sendable, Equatable {
    case failing(String)
    case working
  }

  private let bounds: Bounds
  private var waiting: [Span] = []
  /// The last batch sent, if the collector has not accepted it.
  private var current: [Span] = []
  private var isUnderWay = false
  private var isClosing = false
  /// The arrival of the first span in the queue.
  private var oldest: Duration?
  private var failuresInRow = 0
  private var notBefore = Duration.zero
  private var isReported = false
  package private(set) var counts = Counts()

  package init(bounds: Bounds = Bounds()) { self.bounds = bounds }

  /// Spans in the queue or under way.
  package var count: Int { waiting.count + current.count }

  /// True if nothing more will be sent.
  package var isOver: Bool { isClosing && count == 0 }

  package mutating func add(_ spans: [Span], now: Duration) {
    let room = isClosing ? 0 : max(0, bounds.waiting - count)
    if !spans.isEmpty, room > 0, oldest == nil { oldest = now }
    waiting += spans.prefix(room)
    counts.dropped += max(0, spans.count - room)
  }

  /// Counts spans lost before they came here.
  package mutating func drop(_ count: Int) { counts.dropped += count }

  /// Returns the batch to send now; `nil` if there is none yet. ``finish(_:now:random:)`` follows.
  package mutating func dequeue(now: Duration) -> [Span]? {
    guard !isUnderWay, isClosing || now >= notBefore else { return nil }
    if current.isEmpty {
      guard let oldest, isClosing || waiting.count >= bounds.batch || now - oldest >= bounds.delay
      else { return nil }
      current = Array(waiting.prefix(bounds.batch))
      waiting.removeFirst(current.count)
      // The remaining ones have waited as long, at most.
      self.oldest = waiting.isEmpty ? nil : oldest
    }
    isUnderWay = true
    return current
  }

  /// Records the answer to the batch under way.
  package mutating func finish(
    _ result: ExportResult, now: Duration, random: UInt64
  ) -> Notice? {
    isUnderWay = false
    switch result {
    case .accepted(let rejected):
      let lost = min(max(0, rejected), current.count)
      counts.exported += current.count - lost
      counts.dropped += lost
      current = []
      failuresInRow = 0
      defer { isReported = false }
      return isReported ? .working : nil
    case .refused(let reason):
      counts.failures += 1
      counts.dropped += current.count
      current = []
      return report(reason)
    case .failed(let reason, let pause):
      counts.failures += 1
      failuresInRow += 1
      notBefore = now + (pause.map { min($0, bounds.pauseMax) } ?? growingPause(random))
      if isClosing {
        counts.dropped += count
        (current, waiting, oldest) = ([], [], nil)
      }
      return report(reason)
    }
  }

  /// Sends the rest without pauses, once, and takes no more.
  package mutating func close() { isClosing = true }

  private mutating func report(_ reason: String) -> Notice? {
    defer { isReported = true }
    return isReported ? nil : .failing(reason)
  }

  /// Half of it is random, so servers do not come back together.
  private func growingPause(_ random: UInt64) -> Duration {
    let pause = min(bounds.pauseBase * (1 << min(failuresInRow - 1, 16)), bounds.pauseMax)
    return pause / 2 + pause / 2 * Double(random % 1_024) / 1_024
  }
}
