import FerryHTTPServer
import FerryProtocol

extension OpenSpan {
  /// Characters of a client's text.
  private static let textMax = 256

  /// Ends the span of a request (OpenTelemetry's semantic conventions for HTTP servers, 1.23).
  func end(_ entry: RequestEntry, of request: HTTPRequest) {
    let isKnown = entry.isKnownMethod
    var attributes = [
      SpanAttribute("http.request.method", isKnown ? entry.method : "_OTHER"),
      SpanAttribute("http.response.status_code", entry.status),
      SpanAttribute("url.scheme", "http"),
      SpanAttribute("url.path", String(entry.path.prefix(Self.textMax))),
      SpanAttribute("client.address", entry.remote),
      SpanAttribute("http.request.body.size", entry.bytesIn),
    ]
    let isRoute = entry.route != .unknown
    if isRoute { attributes.append(SpanAttribute("http.route", entry.route.rawValue)) }
    if !isKnown {
      attributes.append(
        SpanAttribute("http.request.method_original", String(entry.method.prefix(Self.textMax))))
    }
    if let bytes = entry.bytesOut {
      attributes.append(SpanAttribute("http.response.body.size", bytes))
    }
    if let space = entry.space { attributes.append(SpanAttribute("ferry.space", space.value)) }
    if let device = entry.device {
      attributes.append(SpanAttribute("ferry.device", device.description))
    }
    if let problem = entry.problem {
      attributes.append(SpanAttribute("ferry.problem", problem.rawValue))
    }
    if let id = request.headers["X-Request-ID"], !id.isEmpty {
      attributes.append(
        SpanAttribute(
          "http.request.header.x-request-id", .texts([String(id.prefix(Self.textMax))])))
    }
    let isFault = entry.status >= 500
    if isFault { attributes.append(SpanAttribute("error.type", String(entry.status))) }
    let method = isKnown ? entry.method : "HTTP"
    end(
      isRoute ? "\(method) \(entry.route.rawValue)" : method, .server, attributes,
      failure: isFault ? "" : nil)
  }
}

/// The counters of traces, for the metrics.
struct TraceCounts: Sendable, Equatable {
  var requests = Tracer.Counts()
  var export = ExportQueue.Counts()
  /// Spans in the queue for the collector.
  var waiting = 0
}

extension TraceCounts {
  init(_ tracer: Tracer) {
    self.init(
      requests: tracer.counts, export: tracer.exporter.counts,
      waiting: tracer.exporter.waitingCount)
  }
}
