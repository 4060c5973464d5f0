import FerryProtocol

/// Spans as OTLP sends them over HTTP: an `ExportTraceServiceRequest` in JSON (opentelemetry-proto
/// 1.x, "JSON Protobuf Encoding"). Identifiers are hexadecimal, 64-bit numbers are strings, and
/// enumerations are numbers.
package struct TraceMessage: Sendable {
  package static let mediaType = "application/json"

  /// The process with the spans.
  package var resource: [SpanAttribute]
  package var scopeName: String
  package var scopeVersion: String

  package init(resource: [SpanAttribute], scopeName: String, scopeVersion: String) {
    self.resource = resource
    self.scopeName = scopeName
    self.scopeVersion = scopeVersion
  }

  package func encoded(_ spans: [Span]) -> [UInt8] {
    var json = JSONWriter(capacity: 512 + spans.count * 640)
    json.object { json in
      json.key("resourceSpans")
      json.array { json in
        json.element()
        json.object { json in
          json.key("resource")
          json.object { write(resource, to: &$0) }
          json.key("scopeSpans")
          json.array { json in
            json.element()
            json.object { write(spans, to: &$0) }
          }
        }
      }
    }
    return json.finish()
  }

  private func write(_ spans: [Span], to json: inout JSONWriter) {
    json.key("scope")
    json.object { json in
      json.member("name", scopeName)
      json.member("version", scopeVersion)
    }
    json.key("spans")
    json.array(of: spans) { json, span in json.object { write(span, to: &$0) } }
  }

  private func write(_ span: Span, to json: inout JSONWriter) {
    json.member("traceId", "\(span.context.trace)")
    json.member("spanId", "\(span.context.span)")
    if !span.context.state.text.isEmpty { json.member("traceState", span.context.state.text) }
    if let parent = span.parent { json.member("parentSpanId", "\(parent)") }
    // `SpanFlags`: W3C's flags, and two bits for a remote or local parent.
    json.key("flags")
    json.number((span.context.isSampled ? 1 : 0) | 0x100 | (span.isParentRemote ? 0x200 : 0))
    json.member("name", span.name)
    json.key("kind")
    json.number(Int64(span.kind.rawValue))
    json.member("startTimeUnixNano", String(span.start))
    json.member("endTimeUnixNano", String(span.end))
    write(span.attributes, to: &json)
    guard let failure = span.failure else { return }
    json.key("status")
    json.object { json in
      if !failure.isEmpty { json.member("message", failure) }
      json.key("code")
      json.number(2)
    }
  }

  private func write(_ attributes: [SpanAttribute], to json: inout JSONWriter) {
    json.key("attributes")
    json.array(of: attributes) { json, attribute in
      json.object { json in
        json.member("key", attribute.name)
        json.key("value")
        json.object { write(attribute.value, to: &$0) }
      }
    }
  }

  private func write(_ value: SpanAttribute.Value, to json: inout JSONWriter) {
    switch value {
    case .text(let text): json.member("stringValue", text)
    case .number(let number): json.member("intValue", String(number))
    case .flag(let flag):
      json.key("boolValue")
      json.bool(flag)
    case .texts(let texts):
      json.key("arrayValue")
      json.object { json in
        json.key("values")
        json.array(of: texts) { json, text in json.object { $0.member("stringValue", text) } }
      }
    }
  }
}
