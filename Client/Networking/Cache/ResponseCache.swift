/// Stores answers for a client: the seam between requests and the storage of answers.
///
/// Neither function fails: a cache that cannot read has no answers, and one that cannot write
/// stores none.
public protocol ResponseCache: Sendable {
  /// Returns the kept answer for the request.
  func lookup(_ request: CacheableRequest) async -> CacheAnswer

  /// Stores an answer accepted by the filters, or renews a kept one by a 304. After a method that
  /// changes a resource, such as POST, removes answers invalidated by the change (RFC 9111 §4.4).
  ///
  /// - Parameter response: the server's response, before any filter altered it.
  /// - Returns: For a 304, the answer it confirms, with renewed fields. If this answer is gone, the
  ///   304 itself; the client then requests the whole answer. Any other response unchanged.
  func store(
    _ response: NetworkResponse, for request: CacheableRequest
  ) async -> NetworkResponse
}

/// The answer of a cache.
public enum CacheAnswer: Sendable, Equatable {
  /// No usable answer.
  case none
  /// An answer that serves without a request to the server; its origin is the cache.
  case fresh(NetworkResponse)
  /// A stale answer. It serves only while the server cannot be reached, or after the server has
  /// confirmed it.
  ///
  /// The validators, such as `If-None-Match`, are the fields of the confirming request. They are
  /// empty if the rule forbids revalidation, or if the answer has none.
  case stale(NetworkResponse, validators: TransportHeaders)
  /// An answer that serves only after the server has confirmed it, by a request with these fields.
  /// The rule or the answer (`must-revalidate`) forbids the use without confirmation.
  case unconfirmed(validators: TransportHeaders)
}

/// The parts of a request needed by a cache.
public struct CacheableRequest: Sendable, Equatable {
  /// The method.
  public var method: TransportMethod
  /// The address without a query: the endpoint.
  public var endpoint: String
  /// The parameters, in the order of travel; identifying parameters belong to the key.
  public var query: [QueryItem]
  /// The fields of the request as sent, with credentials; `Vary` refers to them.
  public var headers: TransportHeaders
  /// The conditions for the use of an earlier answer.
  public var options: CacheOptions
  /// The users of credentials added by interceptors after the cache was asked; `nil` if there are
  /// none. They separate answers as credentials in `headers` do.
  public var user: String?

  /// Creates a request, for callers of a cache other than the client.
  public init(
    method: TransportMethod = .get, endpoint: String, query: [QueryItem] = [],
    headers: TransportHeaders = [:], options: CacheOptions = CacheOptions(),
    user: String? = nil
  ) {
    self.method = method
    self.endpoint = endpoint
    self.query = query
    self.headers = headers
    self.options = options
    self.user = user
  }
}
