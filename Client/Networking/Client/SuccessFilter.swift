/// The base filter unless another is configured: accepts what succeeded (seed row S7.3).
///
/// A 304 is a success for those who asked with a condition of their own. What is refused keeps
/// its answer in ``NetworkError/response``, where a problem document (RFC 9457) can be read.
public struct SuccessFilter: ResponseFilter {
  /// The filter.
  public init() {}

  /// Accepts 2xx, and 304 where it was asked for.
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

/// The filters of a list, one after another.
public struct FilterChain: ResponseFilter {
  private let filters: [any ResponseFilter]

  /// Each filter sees what those before made of the answer.
  public init(_ filters: any ResponseFilter...) { self.filters = filters }

  /// Accepts what all accept.
  public func check(
    _ response: NetworkResponse, for request: NetworkRequest
  ) throws(NetworkError) -> NetworkResponse {
    var response = response
    for filter in filters { response = try filter.check(response, for: request) }
    return response
  }
}

extension NetworkRequest {
  /// What a person calls it: the path, or the `host:port` of an address that may hold secrets.
  fileprivate var name: String {
    guard case .absolute(let url) = base else { return path.isEmpty ? "/" : path }
    return (try? RequestAddress(url))?.endpoint ?? ""
  }
}

extension TransportHeaders {
  /// Whether a field makes the answer depend on what the caller has already (RFC 9110 §13.1).
  var hasCondition: Bool {
    ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"]
      .contains { self[$0] != nil }
  }

  /// Puts the fields of `others` in the place of those of the same names.
  mutating func replace(with others: TransportHeaders) {
    for field in others.fields { self[field.name] = nil }
    for field in others.fields { add(field.name, field.value) }
  }
}
