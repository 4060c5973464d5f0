/// Whether an earlier answer may serve a request (seed row S6.2).
public enum CacheRule: Sendable, Equatable {
  /// Ask the server, and keep nothing.
  case ignore
  /// Ask the client's cache first, and keep what the server answers.
  case use(CacheOptions = CacheOptions())
}

/// How an earlier answer may serve.
public struct CacheOptions: Sendable, Equatable {
  /// How long an answer is fresh; nil leaves that to the answer's own fields.
  public var lifetime: Duration?
  /// Whether an answer that is not fresh any more serves while the server cannot be reached.
  public var staleWhenOffline: Bool
  /// Whether to ask the server if what is stale still holds, instead of for all of it.
  public var revalidate: Bool

  /// The defaults: as the answer's fields say, and asked for again once it is stale.
  public init(
    lifetime: Duration? = nil, staleWhenOffline: Bool = false, revalidate: Bool = true
  ) {
    self.lifetime = lifetime
    self.staleWhenOffline = staleWhenOffline
    self.revalidate = revalidate
  }
}
