/// A rule for answering a request from earlier answers.
public enum CacheRule: Sendable, Equatable {
  /// Ask the server, and keep no answer.
  case ignore
  /// Ask the client's cache first, and keep the server's answer.
  case use(CacheOptions = CacheOptions())
}

/// The conditions for the use of an earlier answer.
public struct CacheOptions: Sendable, Equatable {
  /// How long an answer is fresh; `nil` leaves the decision to the answer's fields.
  public var lifetime: Duration?
  /// How long an answer without a lifetime in its fields is fresh, such as an image with only an
  /// `ETag`; `nil` leaves the decision to the guess of RFC 9111 §4.2.2.
  public var unstatedLifetime: Duration?
  /// True if a stale answer serves while the server cannot be reached.
  public var staleWhenOffline: Bool
  /// True to ask the server if a stale answer is still valid, instead of fetching all of it.
  public var revalidate: Bool
  /// The caller's key, instead of the address and its parameters: requests with one key share one
  /// answer. `get`, `put` and `remove` of the cache use the same keys.
  public var key: String?

  /// Creates options; by default the answer's fields decide, and a stale answer is revalidated.
  public init(
    lifetime: Duration? = nil, unstatedLifetime: Duration? = nil, staleWhenOffline: Bool = false,
    revalidate: Bool = true, key: String? = nil
  ) {
    self.lifetime = lifetime
    self.unstatedLifetime = unstatedLifetime
    self.staleWhenOffline = staleWhenOffline
    self.revalidate = revalidate
    self.key = key
  }
}
