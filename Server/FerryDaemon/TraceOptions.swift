import FerryCommandLine
import FerryNetworking
import FerrySyncServer
import Foundation

/// The options of `serve` for the export of spans.
enum TraceOptions {
  static let options = [
    OptionSpec(
      "trace-endpoint", value: "URL",
      help: """
        An OpenTelemetry collector that gets spans (OTLP over HTTP, JSON); /v1/traces is added to a \
        URL without a path. OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and OTEL_EXPORTER_OTLP_ENDPOINT \
        count, too. Without them nothing is traced.
        """, environment: "FERRY_TRACE_ENDPOINT"),
    OptionSpec(
      "trace-ratio", value: "RATIO",
      help: "The share of traces to export, from 0 to 1.", default: "1",
      environment: "FERRY_TRACE_RATIO"),
    OptionSpec(
      "trace-limit", value: "N",
      help: "Requests a second whose spans are exported at most, whatever devices send.",
      kind: .integer(1...1_000_000), default: "100", environment: "FERRY_TRACE_LIMIT"),
  ]

  /// The longest time of the collector for a message.
  private static let timeLimit = Duration.seconds(10)
  /// The largest answer of a collector, in bytes.
  private static let answerLimit = 64 << 10

  /// Returns `nil` if no collector is named.
  static func tracer(_ arguments: ParsedArguments, _ log: ServiceLog) throws -> Tracer? {
    let ratio = try arguments.string("trace-ratio")
    guard let ratio = TraceRatio(ratio) else {
      throw UsageError(
        .invalidValue, "'\(ratio)' is not a ratio that --trace-ratio takes",
        why: "it is a share of all traces, with at most six digits after the point",
        next: "write a number from 0 to 1, such as 0.05")
    }
    guard let target = try target(arguments) else { return nil }
    let random: @Sendable () -> UInt64 = { .random(in: .min ... .max) }
    let sampler = TraceSampler(
      ratio: ratio, perSecond: try arguments.integer("trace-limit"), random: random)
    let exporter = SpanExporter(
      message(target),
      surroundings: SpanExporter.Surroundings(
        uptime: ServiceClock.system.uptime, random: random,
        sleep: { try await Task.sleep(for: $0) }, post: post(to: target),
        notice: { notice in
          switch notice {
          case .failing(let reason):
            log.write(.warning, "the collector of traces does not take spans", detail: reason)
          case .working: log.write(.info, "the collector of traces takes spans again")
          }
        }))
    return Tracer(
      sampler, exporter: exporter, uptime: ServiceClock.system.uptime, wall: wall, random: random)
  }

  private static func target(_ arguments: ParsedArguments) throws(UsageError) -> TraceTarget? {
    do throws(TraceTarget.Fault) {
      return try TraceTarget(
        option: arguments.stringIfPresent("trace-endpoint"),
        environment: ProcessInfo.processInfo.environment, serviceName: "ferryd")
    } catch {
      throw UsageError(
        .invalidValue, "\(error.name) cannot be used", why: error.reason,
        next: "write a URL such as http://127.0.0.1:4318, or remove it")
    }
  }

  private static func message(_ target: TraceTarget) -> TraceMessage {
    TraceMessage(
      resource: [
        SpanAttribute("service.name", target.serviceName),
        SpanAttribute("service.version", FerryVersion.current),
        SpanAttribute("service.instance.id", UUID().uuidString.lowercased()),
      ] + target.attributes,
      scopeName: "ferryd", scopeVersion: FerryVersion.current)
  }

  /// Nanoseconds since 1970.
  private static let wall: @Sendable () -> UInt64 = {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  private static func post(to target: TraceTarget) -> @Sendable ([UInt8]) async -> ExportResult {
    let transport = SystemTransport()
    var headers: TransportHeaders = ["Content-Type": TraceMessage.mediaType]
    for (name, value) in target.headers.sorted(by: { $0.key < $1.key }) {
      headers[name] = value
    }
    return { [headers] body in
      do throws(TransportError) {
        let answer = try await transport.send(
          TransportRequest(
            .post, target.url, headers: headers, body: body, timeout: timeLimit,
            responseLimit: answerLimit))
        return ExportResult(
          status: answer.status, retryAfter: answer.headers["Retry-After"], body: answer.body)
      } catch {
        return .failed(error.description, pause: nil)
      }
    }
  }
}
