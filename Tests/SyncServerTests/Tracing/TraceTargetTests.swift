import FerrySyncServer
import FerryTestSupport
import Testing

@Suite("The collector of spans", .hangLimit)
struct TraceTargetTests {
  private static func target(
    _ option: String? = nil, _ environment: [String: String] = [:]
  ) throws(TraceTarget.Fault) -> TraceTarget? {
    try TraceTarget(option: option, environment: environment, serviceName: "ferryd")
  }

  @Test(
    "the option and OpenTelemetry's variables name the URL",
    arguments: [
      (nil, [:], nil),
      (nil, ["OTEL_EXPORTER_OTLP_ENDPOINT": ""], nil),
      ("http://c:4318", [:], "http://c:4318/v1/traces"),
      ("http://c:4318/", [:], "http://c:4318/v1/traces"),
      ("https://c/otlp/x", [:], "https://c/otlp/x"),
      (nil, ["OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"], "http://c:4318/v1/traces"),
      (nil, ["OTEL_EXPORTER_OTLP_ENDPOINT": "http://c/otlp/"], "http://c/otlp/v1/traces"),
      (nil, ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/t"], "http://c/t"),
      (
        nil,
        [
          "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/t",
          "OTEL_EXPORTER_OTLP_ENDPOINT": "http://d",
        ], "http://c/t"
      ),
      ("http://o/x", ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/t"], "http://o/x"),
      (nil, ["OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"], nil),
      ("http://o/x", ["OTEL_SDK_DISABLED": "true"], "http://o/x"),
    ] as [(String?, [String: String], String?)])
  func urls(_ option: String?, _ environment: [String: String], _ url: String?) throws {
    #expect(try Self.target(option, environment)?.url == url)
  }

  @Test(
    "an address that is no URL of HTTP is refused by its name",
    arguments: ["", "c:4318", "grpc://c:4317", "http://", "http:///x", "http://c/#x", "http://a b"])
  func badURLs(_ text: String) {
    #expect {
      try Self.target(text)
    } throws: { error in
      (error as? TraceTarget.Fault)?.name == "--trace-endpoint"
    }
  }

  @Test("header fields and the resource come from the environment")
  func environment() throws {
    let target = try #require(
      try Self.target(
        "http://c",
        [
          "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, X-One=1",
          "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-one=2",
          "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment.name=test",
        ]))
    #expect(target.headers == ["api-key": "a b", "x-one": "2"])
    #expect(target.serviceName == "other")
    #expect(target.attributes == [SpanAttribute("deployment.environment.name", "test")])
    let named = try Self.target(
      "http://c", ["OTEL_SERVICE_NAME": "own", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other"])
    #expect(named?.serviceName == "own")
    #expect(try Self.target("http://c")?.serviceName == "ferryd")
  }

  @Test(
    "a field that would break a message is refused",
    arguments: ["a", "=b", "a=b%0D%0AX: y", "a b=c", "a=%ZZ", "a:=c"])
  func badHeaders(_ text: String) {
    #expect {
      try Self.target("http://c", ["OTEL_EXPORTER_OTLP_HEADERS": text])
    } throws: { error in
      (error as? TraceTarget.Fault)?.name == "OTEL_EXPORTER_OTLP_HEADERS"
    }
  }
}
