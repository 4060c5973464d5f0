import FerryHTTPServer
import FerryTestSupport
import Foundation
import Synchronization
import Testing

/// A collector of OpenTelemetry's spans: it reads the messages as the format defines them.
final class Collector: Sendable {
  /// A span with the attributes of the resource.
  struct Span: Sendable {
    var trace: String
    var id: String
    var parent: String?
    var name: String
    var kind: Int
    var flags: Int
    var start: UInt64
    var end: UInt64
    var isError: Bool
    /// Texts as they are; numbers and flags as text.
    var attributes: [String: String]
    var resource: [String: String]
  }

  private let server: HTTPServer
  private let inbox: Inbox

  private final class Inbox: Sendable {
    let requests = Mutex<[HTTPRequest]>([])
    let status = Mutex(200)
  }

  var url: String { "http://127.0.0.1:\(server.port)" }

  /// Answers with this status from now on.
  func answer(_ status: Int) { inbox.status.withLock { $0 = status } }

  init() throws {
    let inbox = Inbox()
    self.inbox = inbox
    server = try HTTPServer(configuration: .init()) { request in
      inbox.requests.withLock { $0.append(request) }
      return HTTPResponse(
        status: inbox.status.withLock { $0 }, headers: ["Content-Type": "application/json"],
        body: .bytes(Array("{}".utf8)))
    }
  }

  func stop() async { await server.stop(grace: .zero) }

  /// Messages received, whatever the answer was.
  var messageCount: Int { inbox.requests.withLock(\.count) }

  /// Returns all spans so far. Throws if a message is not as OTLP has it.
  func spans() throws -> [Span] {
    var known: Set<String> = []
    // The sender repeats a message after a late answer.
    return try allSpans().filter { known.insert($0.id).inserted }
  }

  private func allSpans() throws -> [Span] {
    try inbox.requests.withLock { $0 }.flatMap { request in
      try #require(request.method == "POST" && request.path == "/v1/traces")
      try #require(request.headers["Content-Type"] == "application/json")
      let message = try JSONDecoder().decode(Message.self, from: Data(request.body))
      return try message.resourceSpans.flatMap { resource in
        try resource.scopeSpans.flatMap(\.spans).map { span in
          try span.checked(of: Self.values(resource.resource.attributes))
        }
      }
    }
  }

  /// Returns the spans of a trace when it has a matching one.
  func spans(of trace: String, having isWanted: (Span) -> Bool) async throws -> [Span] {
    try await eventually("the spans of trace \(trace)") {
      let spans = try spans().filter { $0.trace == trace }
      return spans.contains(where: isWanted) ? spans : nil
    }
  }

  private static func values(_ attributes: [Attribute]) -> [String: String] {
    Dictionary(uniqueKeysWithValues: attributes.map { ($0.key, $0.value.text) })
  }

  // MARK: Messages

  private struct Message: Decodable {
    var resourceSpans: [ResourceSpans]
  }

  private struct ResourceSpans: Decodable {
    var resource: Resource
    var scopeSpans: [ScopeSpans]
  }

  private struct Resource: Decodable {
    var attributes: [Attribute]
  }

  private struct ScopeSpans: Decodable {
    var spans: [WireSpan]
  }

  private struct Attribute: Decodable {
    var key: String
    var value: Value
  }

  private struct Value: Decodable {
    var stringValue: String?
    var intValue: String?
    var boolValue: Bool?
    var arrayValue: List?

    struct List: Decodable {
      var values: [Value]
    }

    var text: String {
      stringValue ?? intValue ?? boolValue.map { "\($0)" }
        ?? arrayValue?.values.map(\.text).joined(separator: ",") ?? ""
    }
  }

  private struct WireSpan: Decodable {
    var traceId: String
    var spanId: String
    var parentSpanId: String?
    var name: String
    var kind: Int
    var flags: Int
    var startTimeUnixNano: String
    var endTimeUnixNano: String
    var attributes: [Attribute]
    var status: Status?

    struct Status: Decodable {
      var code: Int
    }

    func checked(of resource: [String: String]) throws -> Span {
      let ids = [(traceId, 32), (spanId, 16)] + (parentSpanId.map { [($0, 16)] } ?? [])
      for (id, length) in ids {
        try #require(id.count == length && id.allSatisfy { "0123456789abcdef".contains($0) })
        try #require(id.contains { $0 != "0" })
      }
      let (start, end) = (UInt64(startTimeUnixNano), UInt64(endTimeUnixNano))
      let span = Span(
        trace: traceId, id: spanId, parent: parentSpanId, name: name, kind: kind, flags: flags,
        start: try #require(start), end: try #require(end), isError: status?.code == 2,
        attributes: Collector.values(attributes), resource: resource)
      try #require(span.start <= span.end && !name.isEmpty && (1...5).contains(kind))
      return span
    }
  }
}
