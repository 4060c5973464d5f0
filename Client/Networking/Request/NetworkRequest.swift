/// What one request needs: a value, in which everything but the path has a default.
///
/// What is nil is the client's default (``NetworkConfiguration``), so a request declares only how
/// it differs (seed rows S7.1, S7.2).
///
/// ```swift
/// let weather = NetworkRequest(
///   "/weather", query: [QueryItem("city", "Köln")],
///   cache: .use(CacheOptions(lifetime: .seconds(600), staleWhenOffline: true)))
/// let answer = try await client.send(weather)
/// ```
public struct NetworkRequest: Sendable {
  /// The method.
  public var method: TransportMethod
  /// Where the path begins.
  public var base: BaseAddress
  /// What is appended to the base, percent-encoded already; empty for the base itself. It has no
  /// query, no fragment and no `.` or `..` segment: those are refused as a bad address.
  public var path: String
  /// Parameters, in the order they travel; encoded by the client.
  public var query: [QueryItem]
  /// Fields of this request; one of a default's name takes its place.
  public var headers: TransportHeaders
  /// What is sent, if anything.
  public var body: NetworkBody?
  /// The limit for one attempt as a whole; for streams and downloads, for each silence.
  public var timeout: Duration?
  /// The limit for reaching the server in one attempt.
  public var connectTimeout: Duration?
  /// The largest body accepted, in bytes after decompression; streams and downloads have none.
  public var responseLimit: Int?
  /// When to try again what failed in a way that may pass.
  public var retry: RetryPolicy?
  /// Whether doing it twice does no harm; nil means that the method says (RFC 9110 §9.2.2).
  public var isRepeatable: Bool?
  /// Whether an earlier answer may serve; only GET has one. Streams and downloads ask no cache.
  public var cache: CacheRule?
  /// Checks the answer after the client's base filter has accepted it.
  public var filter: (any ResponseFilter)?
  /// Of streams and downloads: bytes a second that the body has to bring at least, over each
  /// `timeout`; nil for a body that may be silent for long, such as a stream of events.
  public var minimumRate: Int?

  /// A request for `path`, percent-encoded already.
  public init(
    _ path: String, method: TransportMethod = .get, base: BaseAddress = .main,
    query: [QueryItem] = [], headers: TransportHeaders = [:], body: NetworkBody? = nil,
    timeout: Duration? = nil, connectTimeout: Duration? = nil, responseLimit: Int? = nil,
    retry: RetryPolicy? = nil, isRepeatable: Bool? = nil, cache: CacheRule? = nil,
    filter: (any ResponseFilter)? = nil
  ) {
    self.method = method
    self.base = base
    self.path = path
    self.query = query
    self.headers = headers
    self.body = body
    self.timeout = timeout
    self.connectTimeout = connectTimeout
    self.responseLimit = responseLimit
    self.retry = retry
    self.isRepeatable = isRepeatable
    self.cache = cache
    self.filter = filter
  }

  /// A request for the path of these segments, which are plain text and may hold any character.
  public init(
    segments: [String], method: TransportMethod = .get, base: BaseAddress = .main
  ) {
    self.init(
      segments.map { "/" + PercentEncoding.encode($0) }.joined(), method: method, base: base)
  }

  /// A request for a whole address, such as one that a server named.
  public init(url: String, method: TransportMethod = .get) {
    self.init("", method: method, base: .absolute(url))
  }

  /// Whether a failed attempt may be followed by another.
  var mayRepeat: Bool {
    if let isRepeatable { return isRepeatable }
    return switch method {
    case .get, .head, .put, .delete: true
    case .post, .patch: false
    }
  }
}

/// Which base address a request's path is appended to (seed row S7.2).
public enum BaseAddress: Sendable, Hashable {
  /// The client's main base.
  case main
  /// One of the client's alternatives, by name; one that it has not is a bad address.
  case alternative(String)
  /// This address; the path is empty then. The headers of the client's bases, such as
  /// credentials, are not sent there.
  case absolute(String)
}

/// One parameter of a request's query.
public struct QueryItem: Sendable, Hashable {
  /// The name, not encoded.
  public var name: String
  /// The value, not encoded.
  public var value: String
  /// Whether another value asks for something else, as a page does and a trace number does not:
  /// what identifies is part of a cache's key (seed row S6.2).
  public var identifies: Bool

  /// A parameter.
  public init(_ name: String, _ value: String, identifies: Bool = true) {
    self.name = name
    self.value = value
    self.identifies = identifies
  }
}

/// What a request sends.
public enum NetworkBody: Sendable, Equatable {
  /// These bytes.
  case bytes([UInt8], contentType: String? = nil)
  /// A file, or these bytes of it, read while it is sent and never held whole.
  case file(String, range: Range<Int>? = nil, contentType: String? = nil)

  /// The value of `Content-Type`, unless the request's fields have one.
  var contentType: String? {
    switch self {
    case .bytes(_, let type), .file(_, _, let type): type
    }
  }
}
