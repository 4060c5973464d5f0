import FerryProtocol
import FerryTestSupport
import Foundation
import Synchronization
import Testing

@testable import FerrySyncServer

@Suite("Spans of requests", .hangLimit)
struct TracerTests {
  /// A tracer whose messages and clocks are a test's.
  private struct Stage {
    let tracer: Tracer
    private let sent = Messages()

    init(perSecond: Int = 1_000_000, result: ExportResult = .accepted(rejected: 0)) throws {
      let (sent, time, words) = (sent, Numbers(), Numbers())
      let exporter = SpanExporter(
        TraceMessageTests.message,
        surroundings: SpanExporter.Surroundings(
          uptime: { .zero }, random: { 0 }, sleep: { _ in await Task.yield() },
          post: { body in
            sent.bodies.withLock { $0.append(body) }
            return result
          }, notice: { _ in }))
      tracer = Tracer(
        TraceSampler(
          ratio: try #require(TraceRatio("1")), perSecond: perSecond, random: { 1 }),
        exporter: exporter, uptime: { .zero }, wall: { time.next() * 10 },
        random: { words.next() })
    }

    /// Ends the export. Returns all exported spans.
    func spans() async throws -> [[String: Any]] {
      tracer.exporter.close()
      await tracer.exporter.run()
      return try sent.bodies.withLock { $0 }.flatMap { body in
        let message = try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
        let resources = message?["resourceSpans"] as? [[String: Any]]
        let scopes = resources?.first?["scopeSpans"] as? [[String: Any]]
        return scopes?.first?["spans"] as? [[String: Any]] ?? []
      }
    }
  }

  private final class Messages: Sendable {
    let bodies = Mutex<[[UInt8]]>([])
  }

  /// 1, 2, 3 and so on.
  private final class Numbers: Sendable {
    private let last = Mutex<UInt64>(0)

    func next() -> UInt64 {
      last.withLock {
        $0 += 1
        return $0
      }
    }
  }

  @Test("spans inside a request have its trace, and their parents")
  func nesting() async throws {
    let stage = try Stage()
    let caller = try #require(
      TraceContext(
        traceparents: ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
        tracestates: ["vendor=1"]))
    let request = try #require(stage.tracer.begin(caller))
    await request.run {
      let inner = OpenSpan.current?.child()
      inner?.child().end("inmost", .client, failure: "why")
      inner?.end("inner")
    }
    #expect(OpenSpan.current == nil)
    request.end("outer", .server, [SpanAttribute("n", 1)])
    let spans = try await stage.spans()
    #expect(spans.map { $0["name"] as? String } == ["inmost", "inner", "outer"])
    #expect(spans.map { $0["traceId"] as? String }.allSatisfy { $0 == "\(caller.trace)" })
    #expect(spans.map { $0["traceState"] as? String }.allSatisfy { $0 == "vendor=1" })
    let ids = spans.map { $0["spanId"] as? String }
    #expect(Set(ids).count == 3)
    #expect(spans[0]["parentSpanId"] as? String == ids[1])
    #expect(spans[1]["parentSpanId"] as? String == ids[2])
    #expect(spans[2]["parentSpanId"] as? String == "\(caller.span)")
    #expect(spans.map { $0["flags"] as? Int } == [0x101, 0x101, 0x301])
    #expect(spans.map { $0["kind"] as? Int } == [3, 1, 2])
    #expect((spans[0]["status"] as? [String: Any])?["code"] as? Int == 2)
    let times = spans.map { ($0["startTimeUnixNano"] as? String, $0["endTimeUnixNano"] as? String) }
    #expect(times[0] == ("30", "40") && times[1] == ("20", "50") && times[2] == ("10", "60"))
  }

  @Test("a request without a valid caller begins a trace")
  func newTrace() async throws {
    let stage = try Stage()
    let (one, two) = (try #require(stage.tracer.begin(nil)), try #require(stage.tracer.begin(nil)))
    #expect(one.context.trace != two.context.trace)
    one.end("one", .server)
    let spans = try await stage.spans()
    #expect(spans.count == 1 && spans[0]["parentSpanId"] == nil)
  }

  @Test("work that several requests share is in the trace of each")
  func shared() async throws {
    let stage = try Stage()
    let requests = try (0..<3).map { _ in try #require(stage.tracer.begin(nil)) }
    let work = try #require(OpenSpan.shared(by: requests))
    work.child().end("statement")
    work.end("work")
    for request in requests { request.end("request", .server) }
    #expect(OpenSpan.shared(by: []) == nil)
    let spans = try await stage.spans()
    for request in requests {
      let own = spans.filter { $0["traceId"] as? String == "\(request.context.trace)" }
      #expect(own.map { $0["name"] as? String } == ["statement", "work", "request"])
      #expect(own[0]["parentSpanId"] as? String == own[1]["spanId"] as? String)
      #expect(own[1]["parentSpanId"] as? String == "\(request.context.span)")
    }
  }

  @Test("a request has a bounded number of spans, and none after its end")
  func room() async throws {
    let stage = try Stage()
    let request = try #require(stage.tracer.begin(nil))
    for _ in 0..<1_000 { request.child().end("child") }
    request.end("request", .server)
    request.child().end("late")
    let spans = try await stage.spans()
    #expect(spans.count == Tracer.spansMax)
    #expect(spans.last?["name"] as? String == "request")
    #expect(stage.tracer.exporter.counts.exported == Tracer.spansMax)
    #expect(stage.tracer.exporter.counts.dropped == 1_000 - (Tracer.spansMax - 1) + 1)
  }

  @Test("requests beyond the rate have no spans, and are counted")
  func limited() throws {
    let stage = try Stage(perSecond: 3)
    let spans = (0..<10).map { _ in stage.tracer.begin(nil) }
    #expect(spans.count { $0 != nil } == 3)
    #expect(stage.tracer.counts == Tracer.Counts(traced: 3, limited: 7))
  }

  @Test("a collector that fails loses spans at the end, and holds nothing up")
  func failingCollector() async throws {
    let stage = try Stage(result: .failed("down", pause: nil))
    try #require(stage.tracer.begin(nil)).end("request", .server)
    _ = try await stage.spans()
    #expect(stage.tracer.exporter.counts.dropped == 1)
    #expect(stage.tracer.exporter.waitingCount == 0)
  }
}
