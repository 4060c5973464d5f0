/// Keeps answers for a client: the seam between requests and how answers are stored.
///
/// Neither function fails: a cache that cannot read has nothing, and one that cannot write keeps
/// nothing.
public protocol ResponseCache: Sendable {
  /// What is kept for the request.
  func lookup(_ request: CacheableRequest) async -> CacheAnswer

  /// Keeps an answer that the filters accepted, or renews a kept one by a 304. After a method that
  /// changes something, such as POST, forgets what the change made worthless (RFC 9111 §4.4).
  ///
  /// - Parameter response: as the server gave it, before any filter altered it.
  /// - Returns: for a 304, the answer it confirms, with renewed fields; the 304 itself when that
  ///   answer is gone, and the client then asks for all of it. Any other response as it is.
  func store(
    _ response: NetworkResponse, for request: CacheableRequest
  ) async -> NetworkResponse
}

/// What a cache answers with.
public enum CacheAnswer: Sendable, Equatable {
  /// Nothing that could serve.
  case none
  /// An answer that serves without asking the server; its origin is the cache.
  case fresh(NetworkResponse)
  /// One that serves only while the server cannot be reached or after it has confirmed it.
  ///
  /// The validators, such as `If-None-Match`, are the fields to ask with; none when the rule says
  /// not to, or when the answer has none.
  case stale(NetworkResponse, validators: TransportHeaders)
  /// There is one that serves only after the server has confirmed it, asked with these fields:
  /// the rule or the answer (`must-revalidate`) forbids to go without.
  case unconfirmed(validators: TransportHeaders)
}

/// What a cache needs to know of a request.
public struct CacheableRequest: Sendable, Equatable {
  /// The method.
  public var method: TransportMethod
  /// The address without a query: the endpoint.
  public var endpoint: String
  /// The parameters, in the order they travel; those that identify belong to the key.
  public var query: [QueryItem]
  /// The fields as they are sent, credentials included; what `Vary` speaks of.
  public var headers: TransportHeaders
  /// How an earlier answer may serve.
  public var options: CacheOptions

  /// A request, for caches that are asked by others than the client.
  public init(
    method: TransportMethod = .get, endpoint: String, query: [QueryItem] = [],
    headers: TransportHeaders = [:], options: CacheOptions = CacheOptions()
  ) {
    self.method = method
    self.endpoint = endpoint
    self.query = query
    self.headers = headers
    self.options = options
  }
}
