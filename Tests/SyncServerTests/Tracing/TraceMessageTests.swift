import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerrySyncServer

@Suite("Spans as OTLP's JSON", .hangLimit)
struct TraceMessageTests {
  static let message = TraceMessage(
    resource: [SpanAttribute("service.name", "ferryd")], scopeName: "ferryd", scopeVersion: "1")

  static func span(_ name: String = "GET /x", number: UInt64 = 1) -> Span {
    let context = TraceContext(
      trace: TraceID(random: { 0xAB }), span: SpanID(random: { number }), isSampled: true)
    return Span(
      context: context, parent: nil, name: name, kind: .server, start: 1_790_000_000_123_456_789,
      end: 1_790_000_000_123_456_790, attributes: [], failure: nil)
  }

  @Test("a span has hexadecimal identifiers, times as strings and kinds as numbers")
  func exact() throws {
    var span = Self.span()
    span.context.state = try #require(TraceState(["a=b"]))
    span.parent = SpanID(0xCD)
    span.isParentRemote = true
    span.attributes = [
      SpanAttribute("text", "a\"\n"), SpanAttribute("number", .number(.max)),
      SpanAttribute("flag", .flag(true)), SpanAttribute("texts", .texts(["x", "y"])),
    ]
    span.failure = "broken"
    let text = String(decoding: Self.message.encoded([span]), as: UTF8.self)
    #expect(
      text == """
        {"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":\
        {"stringValue":"ferryd"}}]},"scopeSpans":[{"scope":{"name":"ferryd","version":"1"},"spans":\
        [{"traceId":"00000000000000ab00000000000000ab","spanId":"0000000000000001",\
        "traceState":"a=b","parentSpanId":"00000000000000cd","flags":769,"name":"GET /x","kind":2,\
        "startTimeUnixNano":"1790000000123456789","endTimeUnixNano":"1790000000123456790",\
        "attributes":[{"key":"text","value":{"stringValue":"a\\"\\n"}},\
        {"key":"number","value":{"intValue":"9223372036854775807"}},\
        {"key":"flag","value":{"boolValue":true}},\
        {"key":"texts","value":{"arrayValue":{"values":[{"stringValue":"x"},{"stringValue":"y"}]}}}],\
        "status":{"message":"broken","code":2}}]}]}]}
        """)
  }

  @Test("a span without a parent, a state or a failure has no such members")
  func least() throws {
    let bytes = Self.message.encoded([Self.span(), Self.span(number: 2)])
    let text = String(decoding: bytes, as: UTF8.self)
    for name in ["parentSpanId", "traceState", "status"] { #expect(!text.contains(name)) }
    #expect(text.contains(#""flags":257,"#) && text.contains(#""attributes":[]},{"traceId""#))
    _ = try JSONSerialization.jsonObject(with: Data(bytes))
  }

  @Test(
    "a collector's answer decides about the next attempt",
    arguments: [
      (200, nil, "", ExportResult.accepted(rejected: 0)),
      (200, nil, "{}", .accepted(rejected: 0)),
      (200, nil, #"{"partialSuccess":{"rejectedSpans":"3"}}"#, .accepted(rejected: 3)),
      (200, nil, #"{"partialSuccess":{"rejectedSpans":4}}"#, .accepted(rejected: 4)),
      (200, nil, #"{"partialSuccess":[]}"#, .accepted(rejected: 0)),
      (202, nil, "<html>", .accepted(rejected: 0)),
      (429, "7", "", .failed("the collector answered with status 429", pause: .seconds(7))),
      (503, "-7", "", .failed("the collector answered with status 503", pause: nil)),
      (502, "Thu", "", .failed("the collector answered with status 502", pause: nil)),
      (504, nil, "", .failed("the collector answered with status 504", pause: nil)),
      (400, "7", "", .refused("the collector answered with status 400")),
      (500, nil, "", .refused("the collector answered with status 500")),
      (301, nil, "", .refused("the collector answered with status 301")),
    ] as [(Int, String?, String, ExportResult)])
  func answers(_ status: Int, _ wait: String?, _ body: String, _ expected: ExportResult) {
    #expect(
      ExportResult(status: status, retryAfter: wait, body: Array(body.utf8)) == expected)
  }
}
