/// A span in a trace, as in the headers `traceparent` and `tracestate` (W3C Trace Context).
package struct TraceContext: Sendable, Equatable {
  package var trace: TraceID
  package var span: SpanID
  /// True if the caller may have recorded the span.
  package var isSampled: Bool
  package var state: TraceState

  package init(trace: TraceID, span: SpanID, isSampled: Bool, state: TraceState = .none) {
    self.trace = trace
    self.span = span
    self.isSampled = isSampled
    self.state = state
  }

  /// Creates the context of a new trace.
  package init(random: () -> UInt64) {
    self.init(trace: TraceID(random: random), span: SpanID(random: random), isSampled: true)
  }

  /// Reads the headers of a request. Returns `nil` unless there is exactly one `traceparent`, and
  /// it is valid. A damaged `tracestate` is ignored (§3.3.1.1).
  package init?(traceparents: [String], tracestates: [String]) {
    guard traceparents.count == 1 else { return nil }
    self.init(traceparent: traceparents[0])
    guard !tracestates.isEmpty else { return }
    state = TraceState(tracestates) ?? .none
  }

  /// Reads a `traceparent` (§3.2). A later version may have more parts, which are ignored (§4.3).
  package init?(traceparent text: String) {
    let bytes = Array(text.utf8)
    let dash = UInt8(ascii: "-")
    guard bytes.count >= 55, bytes[2] == dash, bytes[35] == dash, bytes[52] == dash,
      let version = UInt64(lowercaseHexadecimal: bytes[0..<2]), version != 0xFF,
      version == 0 ? bytes.count == 55 : bytes.count == 55 || bytes[55] == dash,
      let high = UInt64(lowercaseHexadecimal: bytes[3..<19]),
      let low = UInt64(lowercaseHexadecimal: bytes[19..<35]),
      let span = UInt64(lowercaseHexadecimal: bytes[36..<52]),
      let flags = UInt64(lowercaseHexadecimal: bytes[53..<55]),
      let traceID = TraceID(high: high, low: low), let spanID = SpanID(span)
    else { return nil }
    self.init(trace: traceID, span: spanID, isSampled: flags & 1 == 1)
  }

  /// The value of the header, 55 characters.
  package var traceparent: String { "00-\(trace)-\(span)-\(isSampled ? "01" : "00")" }

  /// Returns the context of a new span in the same trace.
  package func child(random: () -> UInt64) -> TraceContext {
    var child = self
    child.span = SpanID(random: random)
    return child
  }
}
