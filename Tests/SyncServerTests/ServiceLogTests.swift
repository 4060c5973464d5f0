import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

@Suite(.hangLimit)
struct ServiceLogTests {
  static func object(_ line: String) throws -> [String: Any] {
    try #require(
      try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
  }

  @Test("each request writes one line of JSON with its details")
  func oneLine() async throws {
    let fixture = ServiceFixture()
    let packet = Packet.serviceSample(1)
    _ = await fixture.send("POST", "/v1/spaces/notes/packets", body: packet.encoded())
    let line = try #require(fixture.recorder.lines.first)
    #expect(fixture.recorder.lines.count == 1)
    #expect(line.hasSuffix("}\n"))
    let object = try Self.object(line)
    #expect(object["time"] as? String == "2026-09-21T14:13:20.000Z")
    #expect(object["level"] as? String == "info")
    #expect(object["method"] as? String == "POST")
    #expect(object["route"] as? String == "/v1/spaces/{space}/packets")
    #expect(object["path"] as? String == "/v1/spaces/notes/packets")
    #expect(object["status"] as? Int == 200)
    #expect(object["durationMs"] as? Double == 0)
    #expect(object["bytesIn"] as? Int == packet.encoded().count)
    #expect(object["space"] as? String == "notes")
    #expect(object["device"] as? String == packet.device.description)
    #expect(object["remote"] as? String == "127.0.0.1")
  }

  @Test("the log contains no token, and no request can forge a line")
  func secrets() async throws {
    let fixture = ServiceFixture()
    let token = try await fixture.token(.reader)
    _ = await fixture.send("GET", "/v1/spaces/notes", token: token)
    _ = await fixture.send("GET", "/v1/spaces/notes?token=\(token.text)")
    _ = await fixture.send("GET", "/x\"}\n{\"level\":\"error\"")
    for line in fixture.recorder.lines {
      #expect(!line.contains(token.text.dropFirst(6)))
      #expect(line.filter(\.isNewline).count == 1)
      _ = try Self.object(line)
    }
  }

  @Test(
    "a text is cut by bytes, and nothing of it controls a terminal",
    arguments: [
      ("a\"b\\c\n\t\r", #""a\"b\\c\n\t\r""#), ("\u{1B}[2J", #""\u001b[2J""#),
      ("\u{9B}31m\u{7F}", #""\u009b31m\u007f""#), ("a\u{202E}b\u{2066}", #""a\u202eb\u2066""#),
      ("e\u{301}\u{600}é𝄞", "\"e\u{301}\u{600}é𝄞\""), ("", "\"\""),
      (String(repeating: "a", count: 512), "\"" + String(repeating: "a", count: 512) + "\""),
      (
        String(repeating: "a", count: 16_384),
        "\"" + String(repeating: "a", count: 512) + "…(16384 bytes)\""
      ),
      // One character of 2,001 bytes.
      (
        "a" + String(repeating: "\u{301}", count: 1_000),
        "\"a" + String(repeating: "\u{301}", count: 255) + "…(2001 bytes)\""
      ),
    ])
  func texts(_ text: String, _ json: String) throws {
    #expect(LogText.json(text) == Array(json.utf8))
    let read = try JSONSerialization.jsonObject(
      with: Data(LogText.json(text)), options: .fragmentsAllowed)
    #expect((read as? String)?.utf8.starts(with: text.utf8.prefix(511)) == true)
  }

  @Test("the path of a request is cut in the log")
  func longPath() async throws {
    let fixture = ServiceFixture()
    _ = await fixture.send("GET", "/" + String(repeating: "x", count: 16_000))
    let line = try #require(fixture.recorder.lines.first)
    #expect(line.utf8.count < 1_024)
    #expect(try Self.object(line)["path"] as? String != nil && line.contains("…(16001 bytes)"))
  }

  @Test("one client writes a few lines of rejected requests, and later how many are missing")
  func sampled() async throws {
    let fixture = ServiceFixture()
    for _ in 0..<100 { _ = await fixture.send("GET", "/nowhere") }
    #expect(fixture.recorder.lines.count == 20)
    // Other kinds, and served requests, have their lines.
    _ = await fixture.send("GET", "/v1/spaces/none/changes")
    for _ in 0..<30 { _ = await fixture.send("GET", "/v1/spaces/notes") }
    #expect(fixture.recorder.lines.count == 51)
    fixture.clock.advance(.seconds(2))
    _ = await fixture.send("GET", "/nowhere")
    let last = try Self.object(try #require(fixture.recorder.lines.last))
    #expect(last["leftOut"] as? Int == 80)
    let page = await fixture.send("GET", "/metrics")
    #expect(page.text.contains("ferry_log_lines_left_out_total 80"))
  }

  @Test("the sampler counts by client and kind, is bounded, and forgets no line that it left out")
  func sampler() {
    var sampler = LogSampler(
      .init(rate: 1, burst: 2, totalRate: 1, totalBurst: 6, countMax: 3))
    func decide(_ client: String, _ kind: String, _ second: Int) -> LogSampler.Verdict {
      sampler.decide(client: client, kind: kind, now: .seconds(second))
    }
    let one = (0..<4).map { _ in decide("a", "not_found", 0) }
    #expect(one == [.write(leftOut: 0), .write(leftOut: 0), .leaveOut, .leaveOut])
    #expect(decide("a", "forbidden", 0) == .write(leftOut: 0))
    #expect(decide("b", "not_found", 0) == .write(leftOut: 0))
    #expect(decide("a", "not_found", 1) == .write(leftOut: 2))
    // Many clients have one allowance together.
    let many = (0..<50).map { decide("client-\($0)", "not_found", 1) }
    #expect(many.count { $0 == .leaveOut } == 48)
    #expect(sampler.entryCount <= 3)
    #expect(sampler.leftOut == 50 && sampler.report() == 50 && sampler.report() == 0)
  }

  @Test("health checks are logged at debug only, and a 503 is an error")
  func levels() async throws {
    let fixture = ServiceFixture()
    _ = await fixture.send("GET", "/healthz")
    #expect(try Self.object(fixture.recorder.lines[0])["level"] as? String == "debug")
    fixture.store.fail(.failed("disk"))
    _ = await fixture.send("GET", "/readyz")
    let levels = try fixture.recorder.lines.map { try Self.object($0)["level"] as? String }
    #expect(levels == ["debug", "error", "error"])
    let quiet = LogRecorder()
    let log = ServiceLog(level: .error, sink: quiet, clock: fixture.clock.clock)
    log.write(.info, "not written")
    log.write(.error, "written", detail: "a\"b")
    #expect(quiet.lines.count == 1)
  }

  @Test(
    "times are RFC 3339 in UTC, on both sides of 1970 and in leap years",
    arguments: [
      (Int64(0), "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
      (951_782_399_999, "2000-02-28T23:59:59.999Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
      (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
      (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
      (1_790_000_000_123, "2026-09-21T14:13:20.123Z"),
    ])
  func times(_ milliseconds: Int64, _ text: String) {
    #expect(RFC3339.text(milliseconds: milliseconds) == text)
  }

  @Test("a reader of the log that pauses does not block writers")
  func fullPipe() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    defer { for end in ends { close(end) } }
    let sink = DescriptorLogSink(descriptor: ends[1])
    let line = [UInt8](repeating: 0x61, count: 99_999) + [0x0A]
    for _ in 0..<100 { sink.write(line) }
    #expect(sink.droppedLines > 0)
    #expect(sink.droppedLines < 100)
    // Drains the pipe, so the thread can end.
    var buffer = [UInt8](repeating: 0, count: 100_000)
    var read = 0
    let kept = (100 - sink.droppedLines) * line.count
    while read < kept { read += Foundation.read(ends[0], &buffer, buffer.count) }
    #expect(read == kept, "what was taken is written whole")
    sink.flush()
  }

  @Test("metrics count the work of a standby and of a worker, if there is one")
  func sharedWork() {
    func page(_ work: SharedWork?) -> String {
      MetricsPage(
        counts: ServiceMetrics().snapshot, listeners: 0, droppedLogLines: 0, version: "v",
        startedAt: 0, standbyPulls: work, workerRequests: work
      ).text()
    }
    let lines = page(SharedWork(done: 3, passedOn: 2)).split(separator: "\n")
    for line in [
      #"ferry_standby_pulls_total{by="standby"} 3"#, #"ferry_standby_pulls_total{by="primary"} 2"#,
      #"ferry_worker_requests_total{by="worker"} 3"#,
      #"ferry_worker_requests_total{by="coordinator"} 2"#,
    ] { #expect(lines.contains { $0 == line }) }
    #expect(!page(nil).contains("ferry_standby") && !page(nil).contains("ferry_worker"))
  }

  @Test("metrics count requests and operations in Prometheus' format")
  func metrics() async throws {
    let fixture = ServiceFixture()
    for seed in UInt64(1)...3 {
      _ = await fixture.send(
        "POST", "/v1/spaces/notes/packets",
        body: Packet.serviceSample(seed, operations: 2).encoded())
    }
    _ = await fixture.send("GET", "/v1/spaces/notes/changes")
    _ = await fixture.send("GET", "/v1/spaces/notes/events")
    _ = await fixture.send("BREW", "/pot")
    let page = await fixture.send("GET", "/metrics")
    #expect(page.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8")
    let lines = Set(page.text.split(separator: "\n").map(String.init))
    let expected = [
      #"ferry_http_requests_total{route="/v1/spaces/{space}/packets",method="POST",status="200"} 3"#,
      #"ferry_http_requests_total{route="unknown",method="other",status="404"} 1"#,
      #"ferry_packets_total{status="applied"} 3"#, "ferry_operations_total 6",
      "ferry_commit_packets_count 3", #"ferry_commit_packets_bucket{le="1.0"} 3"#,
      "ferry_event_listeners 1", "ferry_changes_served_total 12", "ferry_pull_pages_total 1",
      #"ferry_build_info{version="0.1.0"} 1"#,
    ]
    for line in expected { #expect(lines.contains(line), "\(line)") }
    for line in lines where !line.hasPrefix("#") {
      #expect(line.split(separator: " ").count == 2, "\(line)")
    }
  }
}
