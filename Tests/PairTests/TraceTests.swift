import FerryTestSupport
import Foundation
import Testing

/// Traces from a device to the database: real processes, and a collector.
@Suite("Traces", .hangLimit)
struct TraceTests {
  @Test("a sync is one trace from the device to the database", arguments: StoreKind.allCases)
  func oneTrace(_ kind: StoreKind) async throws {
    let collector = try Collector()
    let server = try await Server.start(kind, "--trace-endpoint", collector.url)
    let device = try await Device.joined(server.url)
    try await device.write("INSERT INTO notes VALUES ('a', 'b', 1)")
    let report = try await device.ferry("sync", "--json")
    let trace = try #require(try JSONLine.all(report.output).last?.text("trace"))
    let spans = try await collector.spans(of: trace) { $0.name.hasPrefix("POST ") }
    let byID = Dictionary(uniqueKeysWithValues: spans.map { ($0.id, $0) })

    let requests = spans.filter { $0.kind == 2 }
    // The device's own spans are their parents.
    #expect(requests.allSatisfy { $0.parent.map { byID[$0] == nil } == true })
    #expect(Set(requests.map(\.parent)).count == requests.count)
    #expect(requests.allSatisfy { $0.flags == 0x301 && !$0.isError })
    let push = try #require(requests.first { $0.name == "POST /v1/spaces/{space}/packets" })
    #expect(push.attributes["http.request.method"] == "POST")
    #expect(push.attributes["http.route"] == "/v1/spaces/{space}/packets")
    #expect(push.attributes["http.response.status_code"] == "200")
    #expect(push.attributes["url.scheme"] == "http")
    #expect(push.attributes["url.path"] == "/v1/spaces/demo/packets")
    #expect(push.attributes["ferry.space"] == "demo")
    #expect(push.resource["service.name"] == "ferryd")

    let wait = try #require(spans.first { $0.name == "wait for the commit" })
    let commit = try #require(spans.first { $0.name == "commit" })
    #expect(wait.parent == push.id && commit.parent == push.id)
    #expect(push.start <= wait.start && wait.end <= commit.end && commit.end <= push.end)
    #expect(commit.attributes["ferry.commit.packets"] == "1")
    #expect(commit.attributes["ferry.commit.operations"] == "1")
    let ingest = try #require(spans.first { $0.name == "transaction ingest" })
    #expect(ingest.parent == commit.id && ingest.kind == 3)
    let system = kind == .postgres ? "postgresql" : "sqlite"
    #expect(ingest.attributes["db.system.name"] == system)

    let pull = try #require(requests.first { $0.name == "GET /v1/spaces/{space}/changes" })
    let read = try #require(
      spans.first { $0.name == "transaction changes" && $0.parent == pull.id })
    #expect(read.attributes["db.system.name"] == system)
    if kind == .postgres {
      let trips = spans.filter { $0.parent == ingest.id }
      #expect(trips.contains { $0.attributes["db.query.summary"]?.contains("chains") == true })
      #expect(trips.contains { $0.attributes["db.query.summary"]?.hasSuffix("COMMIT") == true })
      let rows = spans.filter { $0.parent == read.id }
      #expect(
        rows.contains { $0.attributes["db.query.summary"]?.contains("pull_rows") == true })
    }
    try await eventually("the trace in the log", from: server) {
      server.log.contains("\"trace\":\"\(trace)\"")
    }
    #expect(try await device.ferry("sync", "--json").output.contains(trace) == false)
    #expect(try await server.stop() == .exited(0))
  }

  @Test("a hostile traceparent begins a new trace, and an unwanted one is not exported")
  func hostile() async throws {
    let collector = try Collector()
    let server = try await Server.start(.embedded, "--trace-endpoint", collector.url)
    let trace = String(repeating: "ab", count: 16)
    let span = String(repeating: "cd", count: 8)
    for text in ["00-\(trace)-\(span)-00", "00-\(trace)-\(span)-01-x", "ff-\(trace)-\(span)-01"] {
      _ = try await Wire.send(
        .get, "\(server.url)/v1/spaces", headers: ["traceparent": text, "tracestate": "=,="])
    }
    _ = try await Wire.send(.get, "\(server.url)/healthz")
    _ = try await Wire.send(
      .get, "\(server.url)/v1/spaces/nowhere",
      headers: ["traceparent": "00-\(trace)-\(span)-01", "X-Request-ID": "r-1"])
    #expect(try await server.stop() == .exited(0))
    // All spans are sent before the process ends; the collector may still read them.
    let requests = try await eventually("the spans of three requests", from: server) {
      let found = try collector.spans().filter { $0.kind == 2 }
      return found.count >= 3 ? found : nil
    }
    #expect(
      requests.map(\.name)
        == ["GET /v1/spaces", "GET /v1/spaces", "GET /v1/spaces/{space}"])
    #expect(requests.map { $0.trace == trace } == [false, false, true])
    #expect(requests.map { $0.parent == nil } == [true, true, false])
    #expect(requests[2].parent == span)
    #expect(requests[2].attributes["http.response.status_code"] == "404")
    #expect(requests[2].attributes["http.request.header.x-request-id"] == "r-1")
    #expect(requests[2].attributes["ferry.problem"] == "unknown_space" && !requests[2].isError)
  }

  @Test("with a ratio of 0, no device can make the server export anything")
  func none() async throws {
    let collector = try Collector()
    let server = try await Server.start(
      .embedded, "--trace-endpoint", collector.url, "--trace-ratio", "0")
    let device = try await Device.joined(server.url)
    try await device.write("INSERT INTO notes VALUES ('a', 'b', 1)")
    try await device.exchange()
    #expect(try await server.stop() == .exited(0))
    #expect(collector.messageCount == 0)
  }

  @Test("a collector that fails, or is away, changes no answer, and its spans follow later")
  func absent() async throws {
    let collector = try Collector()
    collector.answer(503)
    let server = try await Server.start(.embedded, "--trace-endpoint", collector.url)
    let device = try await Device.joined(server.url)
    try await device.write("INSERT INTO notes VALUES ('a', 'b', 1)")
    let report = try await device.ferry("sync", "--json")
    let trace = try #require(try JSONLine.all(report.output).last?.text("trace"))
    try await eventually("a failed export in the metrics", from: server) {
      let page = try await Wire.send(.get, "\(server.url)/metrics").text
      return page.contains("ferry_trace_spans_total{result=\"exported\"} 0")
        && !page.contains("ferry_trace_export_failures_total 0")
    }
    try await eventually("the log to report it", from: server) {
      server.log.contains("the collector of traces does not take spans")
    }
    collector.answer(200)
    _ = try await collector.spans(of: trace) { $0.name.hasPrefix("POST ") }
    try await eventually("the log to report it", from: server) {
      server.log.contains("the collector of traces takes spans again")
    }
    await collector.stop()
    try await device.write("INSERT INTO notes VALUES ('c', 'd', 2)")
    try await device.exchange()
    #expect(try await server.stop() == .exited(0))
  }

  @Test("an address that is no collector's ends the start with the reason")
  func badAddress() async throws {
    let folder = try TemporaryDirectory()
    for (option, value) in [("--trace-endpoint", "c:4317"), ("--trace-ratio", "2")] {
      let finished = try await ChildProcess.run(
        try Executables.ferryd(),
        [
          "serve", "--listen", "127.0.0.1:0", "--data", folder.file("data").path, option, value,
        ])
      #expect(finished.status != .exited(0))
      #expect(finished.error.contains(option) && finished.error.contains(value))
    }
  }
}
