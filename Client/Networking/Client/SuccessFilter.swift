/// The default base filter: accepts successful answers.
///
/// A 304 is a success if the caller's request had a condition. A rejected answer stays in
/// ``NetworkError/response``; it may have a problem document (RFC 9457).
public struct SuccessFilter: ResponseFilter {
  /// Creates the filter.
  public init() {}

  /// Accepts 2xx, and 304 after a conditional request.
  public func check(
    _ response: NetworkResponse, for request: NetworkRequest
  ) throws(NetworkError) -> NetworkResponse {
    if response.isSuccess { return response }
    if response.status == 304, request.headers.hasCondition { return response }
    let reason = "HTTP \(response.status)"
    throw NetworkError(
      .rejected(status: response.status, reason: reason),
      "\(request.method.rawValue) \(request.name) was answered with \(reason)",
      response: response)
  }
}

/// A list of filters, run one after another.
public struct FilterChain: ResponseFilter {
  private let filters: [any ResponseFilter]

  /// Creates a chain; each filter gets the result of the filters before it.
  public init(_ filters: any ResponseFilter...) { self.filters = filters }

  /// Accepts an answer if all filters accept it.
  public func check(
    _ response: NetworkResponse, for request: NetworkRequest
  ) throws(NetworkError) -> NetworkResponse {
    var response = response
    for filter in filters { response = try filter.check(response, for: request) }
    return response
  }
}

extension NetworkRequest {
  /// The request's name for the user: the path, or the `host:port` of an address that may have
  /// secrets.
  fileprivate var name: String {
    guard case .absolute(let url) = base else { return path.isEmpty ? "/" : path }
    return (try? RequestAddress(url))?.endpoint ?? ""
  }
}

extension TransportHeaders {
  /// True if a field makes the answer depend on the caller's own copy (RFC 9110 §13.1).
  var hasCondition: Bool {
    ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"]
      .contains { self[$0] != nil }
  }

  /// Replaces fields by those of `others` with the same names.
  mutating func replace(with others: TransportHeaders) {
    for field in others.fields { self[field.name] = nil }
    for field in others.fields { add(field.name, field.value) }
  }
}
