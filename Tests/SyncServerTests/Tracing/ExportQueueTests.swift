import FerryTestSupport
import Testing

@testable import FerrySyncServer

@Suite("Spans on their way to a collector", .hangLimit)
struct ExportQueueTests {
  private static var bounds: ExportQueue.Bounds {
    var bounds = ExportQueue.Bounds()
    bounds.waiting = 10
    bounds.batch = 4
    return bounds
  }

  private static func spans(_ numbers: ClosedRange<UInt64>) -> [Span] {
    numbers.map { TraceMessageTests.span("\($0)", number: $0) }
  }

  private static func names(_ spans: [Span]?) -> [String]? { spans?.map(\.name) }

  @Test("a span waits for others, but not for longer than the delay")
  func delay() {
    var queue = ExportQueue(bounds: Self.bounds)
    #expect(queue.dequeue(now: .seconds(1)) == nil)
    queue.add(Self.spans(1...2), now: .seconds(1))
    queue.add(Self.spans(3...3), now: .milliseconds(1_500))
    #expect(queue.dequeue(now: .milliseconds(1_999)) == nil)
    #expect(Self.names(queue.dequeue(now: .seconds(2))) == ["1", "2", "3"])
    #expect(queue.dequeue(now: .seconds(9)) == nil, "one message at a time")
    #expect(queue.finish(.accepted(rejected: 0), now: .seconds(9), random: 0) == nil)
    #expect(queue.counts.exported == 3 && queue.count == 0)
    #expect(queue.dequeue(now: .seconds(99)) == nil)
  }

  @Test("a full batch goes at once, in the order of arrival")
  func batches() {
    var queue = ExportQueue(bounds: Self.bounds)
    queue.add(Self.spans(1...9), now: .zero)
    #expect(Self.names(queue.dequeue(now: .zero)) == ["1", "2", "3", "4"])
    _ = queue.finish(.accepted(rejected: 1), now: .zero, random: 0)
    #expect(Self.names(queue.dequeue(now: .zero)) == ["5", "6", "7", "8"])
    _ = queue.finish(.accepted(rejected: 99), now: .zero, random: 0)
    #expect(queue.dequeue(now: .zero) == nil)
    #expect(Self.names(queue.dequeue(now: .seconds(1))) == ["9"])
    #expect(queue.counts.exported == 3 && queue.counts.dropped == 5)
  }

  @Test("the queue is bounded, and counts the spans that it drops")
  func full() {
    var queue = ExportQueue(bounds: Self.bounds)
    queue.add(Self.spans(1...8), now: .zero)
    _ = queue.dequeue(now: .zero)
    queue.add(Self.spans(9...20), now: .zero)
    #expect(queue.count == 10 && queue.counts.dropped == 10)
    for now in 1...1_000 { queue.add(Self.spans(1...100), now: .seconds(now)) }
    #expect(queue.count == 10 && queue.counts.dropped == 100_010)
  }

  @Test("a failed batch is sent again, with growing pauses, and reported once")
  func backOff() {
    var queue = ExportQueue(bounds: Self.bounds)
    queue.add(Self.spans(1...6), now: .zero)
    let failure = ExportResult.failed("down", pause: nil)
    var now = Duration.zero
    // With this random number a pause is half of the longest.
    for (number, half) in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000].enumerated() {
      #expect(Self.names(queue.dequeue(now: now)) == ["1", "2", "3", "4"])
      let notice = queue.finish(failure, now: now, random: 0)
      #expect(notice == (number == 0 ? .failing("down") : nil))
      now += .milliseconds(half)
      #expect(queue.dequeue(now: now - .milliseconds(1)) == nil)
    }
    _ = queue.dequeue(now: now)
    #expect(queue.finish(.accepted(rejected: 0), now: now, random: 0) == .working)
    #expect(Self.names(queue.dequeue(now: now + .seconds(1))) == ["5", "6"])
    #expect(queue.finish(failure, now: now, random: 1_023) == .failing("down"))
    #expect(queue.dequeue(now: now + .milliseconds(998)) == nil)
    #expect(queue.dequeue(now: now + .seconds(1)) != nil)
    #expect(queue.counts.failures == 9 && queue.counts.dropped == 0)
  }

  @Test("a collector's wish for a pause counts, up to the longest pause")
  func wishes() {
    var queue = ExportQueue(bounds: Self.bounds)
    queue.add(Self.spans(1...4), now: .zero)
    _ = queue.dequeue(now: .zero)
    _ = queue.finish(.failed("busy", pause: .seconds(5)), now: .zero, random: 0)
    #expect(queue.dequeue(now: .milliseconds(4_999)) == nil)
    #expect(queue.dequeue(now: .seconds(5)) != nil)
    _ = queue.finish(.failed("busy", pause: .seconds(86_400)), now: .zero, random: 0)
    #expect(queue.dequeue(now: .seconds(59)) == nil)
    #expect(queue.dequeue(now: .seconds(60)) != nil)
  }

  @Test("a batch that can never succeed is dropped, and the next one follows")
  func refused() {
    var queue = ExportQueue(bounds: Self.bounds)
    queue.add(Self.spans(1...8), now: .zero)
    _ = queue.dequeue(now: .zero)
    #expect(queue.finish(.refused("no"), now: .zero, random: 0) == .failing("no"))
    #expect(Self.names(queue.dequeue(now: .zero)) == ["5", "6", "7", "8"])
    #expect(queue.counts.dropped == 4)
  }

  @Test("at the end all spans are sent once, without pauses, and none are taken")
  func closing() {
    var queue = ExportQueue(bounds: Self.bounds)
    queue.add(Self.spans(1...6), now: .zero)
    _ = queue.dequeue(now: .zero)
    _ = queue.finish(.failed("down", pause: .seconds(9)), now: .zero, random: 0)
    queue.close()
    queue.add(Self.spans(7...7), now: .zero)
    #expect(!queue.isOver)
    #expect(Self.names(queue.dequeue(now: .zero)) == ["1", "2", "3", "4"])
    _ = queue.finish(.accepted(rejected: 0), now: .zero, random: 0)
    #expect(Self.names(queue.dequeue(now: .zero)) == ["5", "6"])
    _ = queue.finish(.failed("down", pause: nil), now: .zero, random: 0)
    #expect(queue.isOver && queue.counts.exported == 4 && queue.counts.dropped == 3)
  }
}
