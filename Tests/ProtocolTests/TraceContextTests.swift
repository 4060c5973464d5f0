import FerryProtocol
import FerryTestSupport
import Testing

@Suite("The headers of a trace", .hangLimit)
struct TraceContextTests {
  private static let trace = "0af7651916cd43dd8448eb211c80319c"
  private static let span = "b7ad6b7169203331"
  private static let text = "00-\(trace)-\(span)-01"

  @Test("a traceparent is read and written without a change")
  func roundTrip() throws {
    let context = try #require(TraceContext(traceparent: Self.text))
    #expect(context.trace.description == Self.trace)
    #expect(context.span.description == Self.span)
    #expect(context.isSampled)
    #expect(context.traceparent == Self.text)
    let other = try #require(TraceContext(traceparent: "00-\(Self.trace)-\(Self.span)-00"))
    #expect(!other.isSampled && other.traceparent.hasSuffix("-00"))
  }

  @Test(
    "of unknown flags and of a later version only the known parts count",
    arguments: [
      ("00-\(trace)-\(span)-03", true), ("00-\(trace)-\(span)-fe", false),
      ("01-\(trace)-\(span)-01", true), ("01-\(trace)-\(span)-01-more", true),
      ("cc-\(trace)-\(span)-00-", false),
    ])
  func future(_ text: String, _ isSampled: Bool) throws {
    let context = try #require(TraceContext(traceparent: text))
    #expect(context.isSampled == isSampled)
    #expect(context.traceparent == "00-\(Self.trace)-\(Self.span)-\(isSampled ? "01" : "00")")
  }

  @Test(
    "a traceparent that is not exactly right is no traceparent",
    arguments: [
      "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-1", "00-\(trace)-\(span)-01-",
      "00-\(trace)-\(span)-01-more", "00-\(trace)-\(span)-010", "ff-\(trace)-\(span)-01",
      "0F-\(trace)-\(span)-01", "00-\(trace.uppercased())-\(span)-01",
      "00-\(trace)-\(span.uppercased())-01", "00-\(trace)-\(span)-0A",
      "00-00000000000000000000000000000000-\(span)-01", "00-\(trace)-0000000000000000-01",
      "00_\(trace)-\(span)-01", "00-\(trace)_\(span)-01", "00-\(trace)-\(span)_01",
      "00-\(trace.dropLast())g-\(span)-01", "00-\(trace.dropLast())\0-\(span)-01",
      " 00-\(trace)-\(span)-01", "00-\(trace)-\(span)-01 ", "01-\(trace)-\(span)-01more",
      "00-\(trace)-\(span)-é", String(repeating: "0", count: 1 << 16),
    ])
  func malformed(_ text: String) {
    #expect(TraceContext(traceparent: text) == nil)
  }

  @Test("a request with two traceparents has none")
  func twice() {
    #expect(TraceContext(traceparents: [], tracestates: ["a=b"]) == nil)
    #expect(TraceContext(traceparents: [Self.text, Self.text], tracestates: []) == nil)
    #expect(TraceContext(traceparents: [Self.text], tracestates: [])?.state == TraceState.none)
  }

  @Test(
    "the members of a tracestate are passed on in their order",
    arguments: [
      (["a=1"], "a=1"), (["a=1,b=2", "c=3"], "a=1,b=2,c=3"), ([" a=1\t,, \tb=2 ,"], "a=1,b=2"),
      (["t0@x=v v!", "0=~"], "t0@x=v v!,0=~"), (["", " "], ""),
    ])
  func state(_ lines: [String], _ expected: String) throws {
    let context = TraceContext(traceparents: [Self.text], tracestates: lines)
    #expect(try #require(context).state.text == expected)
  }

  @Test(
    "a damaged tracestate is dropped whole, and the traceparent counts",
    arguments: [
      ["a"], ["=1"], ["a="], ["A=1"], ["a=1", "a=2"], ["a=1=2"], ["a=\u{1}"], ["a=é"], ["a b=1"],
      ["_a=1"], [String(repeating: "k", count: 257) + "=1"],
      ["a=" + String(repeating: "v", count: 257)], (0...32).map { "k\($0)=1" },
      [String(repeating: " ", count: 17 << 10)],
    ])
  func damagedState(_ lines: [String]) throws {
    #expect(TraceState(lines) == nil)
    let context = TraceContext(traceparents: [Self.text], tracestates: lines)
    #expect(try #require(context).state == .none)
  }

  @Test("a tracestate that is too long loses its long members first, and then the last ones")
  func longState() throws {
    let long = "long=" + String(repeating: "x", count: 200)
    let short = (0..<10).map { "k\($0)=" + String(repeating: "y", count: 60) }
    let state = try #require(TraceState(["\(long),\(short.joined(separator: ","))"]))
    #expect(state.text == short.prefix(8).joined(separator: ","))
    #expect(state.text.utf8.count <= 512)
    #expect(try #require(TraceState([long])).text == long)
  }

  @Test("a new span stays in its trace, and no identifier is zero")
  func children() throws {
    let parent = TraceContext(random: { 0 })
    #expect(parent.trace.description == String(repeating: "0", count: 31) + "1")
    #expect(parent.span.description == String(repeating: "0", count: 15) + "1")
    let child = parent.child(random: { 0xFEDC_BA98_7654_3210 })
    #expect(child.trace == parent.trace && child.span.description == "fedcba9876543210")
    #expect(TraceContext(traceparent: child.traceparent) == child)
  }
}
