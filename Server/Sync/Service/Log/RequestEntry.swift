import FerryProtocol

/// An answered request, for the log and the metrics. It holds no header, so no token can get into
/// either.
struct RequestEntry: Sendable, Equatable {
  /// Milliseconds since 1970 when the answer was ready.
  var wall: Int64
  var method: String
  var route: Route
  /// As it was sent, without the query.
  var path: String
  var status: Int
  var duration: Duration
  /// Bytes of the body as they came.
  var bytesIn: Int
  /// Bytes of the answer's body before a content coding; `nil` for a stream.
  var bytesOut: Int?
  var space: SpaceName?
  var device: DeviceID?
  var remote: String
  /// The code of the problem in the answer.
  var problem: ProblemCode?
  /// The trace with the request's span; `nil` without an export.
  var trace: TraceID?
  /// True if the sender was admitted.
  var isAdmitted = false

  /// True if anyone can cause any number of such lines.
  var isCheap: Bool { !isAdmitted || status >= 400 }

  /// The kind of a line, counted for each client.
  var kind: String { problem?.rawValue ?? String(status) }

  /// The method, or `other`: clients cannot make up metrics.
  var knownMethod: String { isKnownMethod ? method : "other" }

  var isKnownMethod: Bool {
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"].contains(method)
  }

  /// The importance of the line.
  var level: LogLevel {
    if status >= 500 { return .error }
    switch route {
    case .health, .readiness, .metrics: return .debug
    default: return .info
    }
  }

  /// - Parameter leftOut: Lines of this client and kind omitted before.
  func line(leftOut: Int = 0) -> [UInt8] {
    var line = LogLine(level, "request", wall: wall)
    line.add("method", method)
    line.add("route", route.rawValue)
    line.add("path", path)
    line.add("status", status)
    line.add("durationMs", milliseconds: duration)
    line.add("bytesIn", bytesIn)
    if let bytesOut { line.add("bytesOut", bytesOut) }
    line.add("space", space?.value)
    line.add("device", device?.description)
    line.add("remote", remote)
    line.add("problem", problem?.rawValue)
    line.add("trace", trace?.description)
    if leftOut > 0 { line.add("leftOut", leftOut) }
    return line.finish()
  }
}
