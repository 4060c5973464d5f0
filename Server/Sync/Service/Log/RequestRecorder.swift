import FerryHTTPServer
import FerryProtocol

/// Records requests and their answers in the log, the metrics, the rates and the traces.
struct RequestRecorder: Sendable {
  private let core: ServiceCore
  private let gate: AccessGate
  private let tracer: Tracer?

  init(_ core: ServiceCore, gate: AccessGate, tracer: Tracer?) {
    (self.core, self.gate, self.tracer) = (core, gate, tracer)
  }

  func begin(_ request: HTTPRequest) -> RequestContext {
    let match = RouteMatch(
      method: request.method, segments: request.segments, path: request.path)
    return RequestContext(request: request, match: match, started: core.clock.uptime())
  }

  /// Begins the span of a request; `nil` if it is not exported. Probes and scrapes never are.
  func beginSpan(of context: RequestContext) -> OpenSpan? {
    guard let tracer else { return nil }
    switch context.match.route {
    case .health, .readiness, .metrics: return nil
    default: break
    }
    let headers = context.request.headers
    return tracer.begin(
      TraceContext(
        traceparents: headers.values(of: "traceparent"),
        tracestates: headers.values(of: "tracestate")))
  }

  /// Records an answer; a stream when it ends.
  func record(_ context: RequestContext, _ response: HTTPResponse) {
    let status = response.status
    if case .stream(let stream) = response.body {
      stream.onClose { record(context, status: status, bytesOut: nil) }
    } else {
      let bytes = response.contentCount(for: context.request.method)
      record(context, status: status, bytesOut: bytes)
    }
  }

  private func record(_ context: RequestContext, status: Int, bytesOut: Int?) {
    var entry = RequestEntry(
      wall: core.clock.wall(), method: context.request.method, route: context.match.route,
      path: context.request.path, status: status,
      duration: core.clock.uptime() - context.started,
      bytesIn: context.request.bodyWireBytes, bytesOut: bytesOut, space: context.space,
      device: context.device, remote: context.request.remoteAddress, problem: context.problem)
    entry.isAdmitted = context.principal != nil
    if let span = context.span {
      entry.trace = span.context.trace
      span.end(entry, of: context.request)
    }
    if let principal = context.principal, context.problem != .rateLimited {
      // Compressed content costs the server as much as the uncompressed content.
      let received = max(context.request.bodyWireBytes, context.request.body.count)
      gate.count(bytes: received + (bytesOut ?? 0), of: principal, in: context.space)
    }
    core.metrics.count(entry)
    core.log.write(entry)
  }
}
