/// What holds for every request of a client that does not say otherwise (seed row S7.2).
public struct NetworkConfiguration: Sendable {
  /// Where requests go that name no base; without one, only absolute addresses can be asked.
  public var main: BaseURL?
  /// Further bases by the names that requests choose them by, such as a test server's.
  public var alternatives: [String: BaseURL] = [:]
  /// Fields of every request, to whatever base: nothing secret belongs here.
  public var headers: TransportHeaders = [:]
  /// The limit for one attempt as a whole; for streams and downloads, for each silence.
  public var timeout: Duration = .seconds(60)
  /// The limit for reaching the server in one attempt.
  public var connectTimeout: Duration = .seconds(10)
  /// The largest body accepted in memory, in bytes after decompression.
  public var responseLimit = 64 << 20
  /// When to try again what failed in a way that may pass.
  public var retry = RetryPolicy()
  /// Whether an earlier answer may serve.
  public var cache = CacheRule.ignore
  /// Where a server may send requests on to.
  public var redirects = RedirectRule.follow
  /// A PEM file of certificate authorities to trust besides the system's; nil for the transport's.
  public var certificateAuthorities: String?
  /// What judges every answer first, whatever request it is for.
  public var filter: any ResponseFilter = SuccessFilter()

  /// The defaults for a server.
  public init(_ main: BaseURL? = nil) { self.main = main }
}

/// An address that paths are appended to, and what is said there alone.
public struct BaseURL: Sendable, Equatable, ExpressibleByStringLiteral {
  /// An absolute `http://` or `https://` address without a query.
  public var url: String
  /// Fields of every request to this base, such as credentials, which no other base must see.
  public var headers: TransportHeaders

  /// A base.
  public init(_ url: String, headers: TransportHeaders = [:]) {
    self.url = url
    self.headers = headers
  }

  /// A base without fields of its own.
  public init(stringLiteral url: String) { self.init(url) }
}

extension RetryPolicy {
  /// One attempt, for callers that decide themselves about another.
  public static let never = RetryPolicy(attemptsMax: 1)
}
