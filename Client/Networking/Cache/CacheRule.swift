/// A rule for answering a request from earlier answers.
public enum CacheRule: Sendable, Equatable {
  /// Ask the server, and keep no answer.
  case ignore
  /// Ask the client's cache first, and keep the server's answer.
  case use(CacheOptions = CacheOptions())
}

/// The conditions under which an earlier answer serves.
public struct CacheOptions: Sendable, Equatable {
  /// How long an answer is fresh; `nil` leaves that to the answer's own fields.
  public var lifetime: Duration?
  /// How long an answer is fresh whose fields state no lifetime, such as an image with only an
  /// `ETag`; `nil` leaves that to the guess of RFC 9111 §4.2.2.
  public var unstatedLifetime: Duration?
  /// Whether a stale answer serves while the server cannot be reached.
  public var staleWhenOffline: Bool
  /// Whether to ask the server if a stale answer is still valid, instead of fetching all of it.
  public var revalidate: Bool
  /// A key of the caller's own, in place of the address and its parameters: requests with one key
  /// share one answer. `get`, `put` and `remove` of the cache use the same keys.
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
