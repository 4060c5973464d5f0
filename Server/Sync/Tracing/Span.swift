import FerryProtocol

/// A finished span.
package struct Span: Sendable, Equatable {
  /// The place of the span in a request (opentelemetry-proto, `Span.SpanKind`).
  package enum Kind: Int, Sendable {
    case `internal` = 1
    case server = 2
    case client = 3
  }

  package var context: TraceContext
  /// `nil` for the first span of a trace.
  package var parent: SpanID?
  /// True if the parent is a span of another process.
  package var isParentRemote = false
  package var name: String
  package var kind: Kind
  /// Nanoseconds since 1970.
  package var start: UInt64
  /// Nanoseconds since 1970; not before the start.
  package var end: UInt64
  package var attributes: [SpanAttribute]
  /// The reason of a failure; `nil` for none.
  package var failure: String?
}

/// A name and a value of a span or of a resource.
package struct SpanAttribute: Sendable, Equatable {
  package enum Value: Sendable, Equatable {
    case text(String)
    case texts([String])
    case number(Int64)
    case flag(Bool)
  }

  package var name: String
  package var value: Value

  package init(_ name: String, _ value: Value) {
    self.name = name
    self.value = value
  }

  package init(_ name: String, _ text: String) { self.init(name, .text(text)) }

  package init(_ name: String, _ number: Int) { self.init(name, .number(Int64(number))) }
}
