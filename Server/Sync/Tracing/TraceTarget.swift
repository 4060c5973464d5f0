import FerryPlatform
import Foundation

/// The destination of spans, by an option and by OpenTelemetry's variables of the environment;
/// pure.
package struct TraceTarget: Sendable, Equatable {
  /// An unusable value.
  package struct Fault: Error, Equatable {
    /// The option or the variable.
    package var name: String
    package var reason: String
  }

  package var url: String
  /// Header fields of each message, such as a collector's key.
  package var headers: [String: String]
  package var serviceName: String
  /// Further attributes of the resource.
  package var attributes: [SpanAttribute]

  private static let path = "/v1/traces"

  /// Returns `nil` if nothing names a collector, or `OTEL_SDK_DISABLED` is `true`.
  ///
  /// - Parameter option: The value of the command line; it overrides the environment.
  package init?(
    option: String?, environment: [String: String], serviceName: String
  ) throws(Fault) {
    func variable(_ name: String) -> String? {
      environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
    if variable("OTEL_SDK_DISABLED")?.lowercasedASCII == "true", option == nil { return nil }
    let (traces, all) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
    if let option {
      url = try Self.url(option, from: "--trace-endpoint", adding: .ifWithoutPath)
    } else if let text = variable(traces) {
      url = try Self.url(text, from: traces, adding: .never)
    } else if let text = variable(all) {
      url = try Self.url(text, from: all, adding: .always)
    } else {
      return nil
    }
    headers = [:]
    for name in ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"] {
      for (key, value) in try Self.pairs(variable(name) ?? "", from: name) {
        guard Self.isField(key, value) else {
          throw Fault(name: name, reason: "\"\(key)\" is not a header field with a value")
        }
        headers[key.lowercasedASCII] = value
      }
    }
    let resource = "OTEL_RESOURCE_ATTRIBUTES"
    var pairs = try Self.pairs(variable(resource) ?? "", from: resource)
    let named = pairs.last { $0.key == "service.name" }?.value
    self.serviceName = variable("OTEL_SERVICE_NAME") ?? named ?? serviceName
    pairs.removeAll { $0.key == "service.name" }
    attributes = pairs.map { SpanAttribute($0.key, $0.value) }
  }

  private enum Path {
    case never, ifWithoutPath, always
  }

  private static func url(
    _ text: String, from name: String, adding path: Path
  ) throws(Fault) -> String {
    guard var parts = URLComponents(string: text, encodingInvalidCharacters: false),
      ["http", "https"].contains(parts.scheme),
      parts.host?.isEmpty == false, parts.fragment == nil
    else { throw Fault(name: name, reason: "\"\(text)\" is not a http:// or https:// URL") }
    let isRoot = parts.path.isEmpty || parts.path == "/"
    if path == .always || path == .ifWithoutPath && isRoot {
      if parts.path.ends(with: "/") { parts.path.removeLast() }
      parts.path += Self.path
    }
    return parts.string ?? text
  }

  /// Reads `key=value,key=value`; values are percent-encoded.
  private static func pairs(
    _ text: String, from name: String
  ) throws(Fault) -> [(key: String, value: String)] {
    var pairs: [(key: String, value: String)] = []
    for part in text.words(at: ",") {
      let sides = part.parts(at: "=", most: 2)
      let key = sides[0].trimmedASCII
      guard sides.count == 2, !key.isEmpty,
        let value = sides[1].trimmedASCII.removingPercentEncoding
      else { throw Fault(name: name, reason: "it is not a list such as key=value,key=value") }
      pairs.append((String(key), value))
    }
    return pairs
  }

  /// Returns `true` if these are a field of HTTP (RFC 9110 §5.1, §5.5).
  private static func isField(_ name: String, _ value: String) -> Bool {
    name.utf8.allSatisfy(\.isTokenByte) && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
  }
}
