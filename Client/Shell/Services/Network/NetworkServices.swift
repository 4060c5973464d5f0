import FerryNetworking
import FerryPlatform
import FerryProtocol

/// The service `net.request`: requests of pages to other origins, over the app's ``NetworkClient``.
///
/// The browser itself lets a page reach no other origin. The app lists the origins, and a redirect
/// never leaves one.
///
/// ```swift
/// let services = NetworkServices(origins: ["https://api.example.org"])
/// ```
public struct NetworkServices: Sendable {
  /// Fields that pages may not set: the client's own, and those that identify a page or a user.
  private static let reservedFields: Set<String> = [
    "host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer",
    "keep-alive", "expect", "cookie", "origin", "referer", "proxy-authorization",
  ]
  private static let responseBytesMax = 16 << 20
  /// Texts up to this number of bytes travel within the answer.
  private static let textBytesMax = 256 << 10

  private let client: NetworkClient
  private let origins: [RequestAddress]

  /// Creates the service. An origin other than an address of `http` or `https` is ignored.
  ///
  /// - Parameters:
  ///   - origins: the allowed ones, such as `https://api.example.org`.
  ///   - transport: carries the requests.
  ///   - configuration: the defaults of the requests. Redirects stay within an origin.
  public init(
    origins: [String], transport: any Transport = SystemTransport(),
    configuration: NetworkConfiguration = NetworkConfiguration()
  ) {
    var configuration = configuration
    configuration.redirects = .withinOrigin
    configuration.responseLimit = min(configuration.responseLimit, Self.responseBytesMax)
    configuration.filter = AcceptAll()
    client = NetworkClient(configuration, transport: transport)
    self.origins = origins.compactMap { try? RequestAddress($0) }
  }

  /// Returns true if a text is the address of a server: a path would limit nothing.
  package static func isOrigin(_ text: String) -> Bool {
    let rest = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    return (rest.count == 3 || rest.count == 4 && rest[3].isEmpty)
      && !text.utf8.contains { "?#@".utf8.contains($0) }
      && (try? RequestAddress(text)) != nil
  }

  /// All of them.
  public var all: [Service] {
    [
      Service(
        "net.request", permission: "sends requests to \(names)", argument: Self.schema,
        result: .map(of: .any, max: 8)
      ) { [self] call in
        let request = try await request(call)
        do throws(NetworkError) {
          return Self.value(try await client.send(request), call.files)
        } catch {
          throw error.serviceError
        }
      }
    ]
  }

  private var names: String {
    origins.isEmpty ? "no other server" : origins.map(\.endpoint).joined(separator: ", ")
  }

  private static let schema = ValueSchema.object([
    .required("url", .text(max: 2_000)),
    .optional("method", .choice(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])),
    .optional("headers", .map(of: .text(max: 4_096), max: 32)),
    .optional(
      "body",
      .either([.object([.required("file", .text(max: 1_024))]), .text(max: textBytesMax)])),
  ])

  private func request(_ call: ServiceCall) async throws -> NetworkRequest {
    let url = call.argument["url"]?.text ?? ""
    // By bytes, so no combining mark hides the sign of credentials.
    guard !url.utf8.contains(UInt8(ascii: "@")), !url.utf8.contains(UInt8(ascii: "\\")),
      let address = try? RequestAddress(url),
      origins.contains(where: { $0.hasSameOrigin(as: address) })
    else {
      throw ServiceError("origin_not_allowed", "the app allows requests to \(names) only")
    }
    let method = TransportMethod(rawValue: call.argument["method"]?.text ?? "GET") ?? .get
    var request = NetworkRequest(url: url, method: method)
    if case .object(let fields) = call.argument["headers"] {
      for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
        guard !Self.reservedFields.contains(name.folded.text) else {
          throw ServiceError("invalid_argument", "the field \(name) is the program's")
        }
        request.headers.add(name.text, value.text ?? "")
      }
    }
    request.body = try await body(call)
    return request
  }

  private func body(_ call: ServiceCall) async throws -> NetworkBody? {
    switch call.argument["body"] {
    case .text(let text): return .bytes(Array(text.utf8))
    case .object:
      let address = call.argument["body"]?["file"]?.text ?? ""
      guard let content = call.files.content(at: address) else {
        throw ServiceError("invalid_argument", "the page has no file of this address")
      }
      return .bytes(try await content.readAll(), contentType: content.mediaType)
    default: return nil
    }
  }

  private static func value(_ response: NetworkResponse, _ files: PageFiles) -> ServiceValue {
    var headers: [Name: ServiceValue] = [:]
    for field in response.headers.fields where !field.isNamed("Set-Cookie") {
      let name = Name(field.name.lowercasedASCII)
      headers[name] = .text((headers[name]?.text.map { "\($0), " } ?? "") + field.value)
    }
    var value: [Name: ServiceValue] = [
      "status": ServiceValue(response.status), "headers": .object(headers),
    ]
    if response.body.count <= textBytesMax,
      let text = String(validating: response.body, as: UTF8.self)
    {
      value["text"] = .text(text)
    } else {
      let type = response.headers["Content-Type"] ?? "application/octet-stream"
      value["file"] = .text(files.add(response.body, mediaType: type))
      value["size"] = ServiceValue(response.body.count)
    }
    return .object(value)
  }
}

/// Accepts every answer: the page sees the status.
private struct AcceptAll: ResponseFilter {
  func check(
    _ response: NetworkResponse, for request: NetworkRequest
  ) throws(NetworkError) -> NetworkResponse { response }
}

extension NetworkError: ServiceErrorConvertible {
  package var serviceError: ServiceError {
    switch kind {
    case .offline: ServiceError("offline", message)
    case .timedOut: ServiceError("timed_out", message)
    case .interrupted: ServiceError("interrupted", message)
    case .secureConnectionFailed: ServiceError("not_secure", message)
    case .badAddress: ServiceError("invalid_argument", message)
    case .redirectRefused: ServiceError("origin_not_allowed", message)
    case .responseTooLarge: ServiceError("too_large", message)
    case .cancelled: .cancelled
    default: ServiceError("request_failed", message)
    }
  }
}
