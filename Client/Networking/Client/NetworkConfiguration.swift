/// The defaults for every request of a client.
public struct NetworkConfiguration: Sendable {
  /// The base of requests that name no other; without it, only absolute addresses work.
  public var main: BaseURL?
  /// Further bases by the names in requests, such as a test server's.
  public var alternatives: [String: BaseURL] = [:]
  /// Fields of every request to any base; secrets do not belong here.
  public var headers: TransportHeaders = [:]
  /// Parameters of every request to the bases above, before the request's own. A request's
  /// parameter replaces those of the same name here. Absolute addresses do not get them.
  public var query: [QueryItem] = []
  /// The accepted media types of requests: sent as `Accept`, and checked in successful responses;
  /// `nil` for any.
  public var accepts: [MediaRange]?
  /// The limit for one attempt as a whole; for streams and downloads, for each silence.
  public var timeout: Duration = .seconds(60)
  /// The limit for reaching the server in one attempt.
  public var connectTimeout: Duration = .seconds(10)
  /// The largest body accepted in memory, in bytes after decompression.
  public var responseLimit = 64 << 20
  /// The most requests of the client at once; `nil` for no limit. The others wait for their turns.
  /// A stream or a download counts until the end of its body.
  public var requestsMax: Int?
  /// The most requests of the client at once for one host; `nil` for no limit.
  public var requestsPerHostMax: Int?
  /// When to repeat a request after a temporary failure.
  public var retry = RetryPolicy()
  /// True if an earlier answer may serve.
  public var cache = CacheRule.ignore
  /// The addresses that a server may redirect requests to.
  public var redirects = RedirectRule.follow
  /// A PEM file of certificate authorities to trust besides the system's; `nil` for the
  /// transport's.
  public var certificateAuthorities: String?
  /// The filter that checks every answer first, for all requests.
  public var filter: any ResponseFilter = SuccessFilter()
  /// Change each request before it is sent, one after another, and review the response.
  public var interceptors: [any RequestInterceptor] = []
  /// Gets a record of each request when it has ended, on the thread of the request: it must return
  /// soon. A record contains no secrets.
  public var log: (@Sendable (RequestRecord) -> Void)?

  /// Creates the defaults for a server.
  public init(_ main: BaseURL? = nil) { self.main = main }
}

/// The address before a path, with its own header fields.
public struct BaseURL: Sendable, Equatable, ExpressibleByStringLiteral {
  /// An absolute `http://` or `https://` address without a query.
  public var url: String
  /// Fields of every request to this base, such as credentials; no other base must see them.
  public var headers: TransportHeaders

  /// Creates a base.
  public init(_ url: String, headers: TransportHeaders = [:]) {
    self.url = url
    self.headers = headers
  }

  /// Creates a base without header fields.
  public init(stringLiteral url: String) { self.init(url) }
}

extension RetryPolicy {
  /// One attempt, for callers that decide about further ones.
  public static let never = RetryPolicy(attemptsMax: 1)
}

extension BaseURL {
  /// Throws if the address has no scheme, host and port supported by the client.
  ///
  /// - Throws: kind `badAddress`.
  package func check() throws(NetworkError) {
    do { _ = try RequestAddress(url) } catch { throw NetworkError(error) }
  }
}
