/// A request: a value with a default for everything but the path.
///
/// A `nil` property has the client's default (``NetworkConfiguration``), so a request declares only
/// the differences.
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
  /// The base of the path.
  public var base: BaseAddress
  /// The text appended to the base, percent-encoded already; empty for the base itself. A query, a
  /// fragment, or a `.` or `..` segment makes it a bad address.
  public var path: String
  /// Parameters, in the order of travel; the client encodes them.
  public var query: [QueryItem]
  /// Fields of this request; each replaces a default of the same name.
  public var headers: TransportHeaders
  /// The body, if there is one.
  public var body: NetworkBody?
  /// The limit for one attempt as a whole; for streams and downloads, for each silence.
  public var timeout: Duration?
  /// The limit for reaching the server in one attempt.
  public var connectTimeout: Duration?
  /// The largest body accepted, in bytes after decompression; streams and downloads have none.
  public var responseLimit: Int?
  /// When to repeat the request after a temporary failure.
  public var retry: RetryPolicy?
  /// True if sending the request twice is harmless; `nil` leaves the decision to the method (RFC
  /// 9110 §9.2.2).
  public var isRepeatable: Bool?
  /// True if an earlier answer may serve; only for GET. Streams and downloads use no cache.
  public var cache: CacheRule?
  /// The accepted media types of the request: sent as `Accept`, and checked in a successful
  /// response; `nil` for the client's.
  public var accepts: [MediaRange]?
  /// Checks the answer after the client's base filter has accepted it.
  public var filter: (any ResponseFilter)?
  /// For streams and downloads: the least bytes a second of the body, over each `timeout`. `nil`
  /// for a body that may be silent for long, such as a stream of events.
  public var minimumRate: Int?
  /// The addresses that the server may redirect the request to.
  public var redirects: RedirectRule?
  /// The addresses that the request and redirects may connect to.
  public var destinations = DestinationRule.any

  /// Creates a request for `path`, percent-encoded already.
  public init(
    _ path: String, method: TransportMethod = .get, base: BaseAddress = .main,
    query: [QueryItem] = [], headers: TransportHeaders = [:], body: NetworkBody? = nil,
    timeout: Duration? = nil, connectTimeout: Duration? = nil, responseLimit: Int? = nil,
    retry: RetryPolicy? = nil, isRepeatable: Bool? = nil, cache: CacheRule? = nil,
    accepts: [MediaRange]? = nil, filter: (any ResponseFilter)? = nil
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
    self.accepts = accepts
    self.filter = filter
  }

  /// Creates a request for the path of these segments: plain text with any characters.
  public init(
    segments: [String], method: TransportMethod = .get, base: BaseAddress = .main
  ) {
    self.init(
      segments.map { "/" + PercentEncoding.encode($0) }.joined(), method: method, base: base)
  }

  /// Creates a request for a whole address, such as one from a server.
  public init(url: String, method: TransportMethod = .get) {
    self.init("", method: method, base: .absolute(url))
  }

  /// True if another attempt may follow a failed one.
  var mayRepeat: Bool {
    if let isRepeatable { return isRepeatable }
    return switch method {
    case .get, .head, .put, .delete: true
    case .post, .patch: false
    }
  }
}

/// The base address before a request's path.
public enum BaseAddress: Sendable, Hashable {
  /// The client's main base.
  case main
  /// One of the client's alternatives, by name; an unknown name is a bad address.
  case alternative(String)
  /// This address; the path is empty then. The headers of the client's bases, such as credentials,
  /// are not sent to it.
  case absolute(String)
}

/// One parameter of a request's query.
public struct QueryItem: Sendable, Hashable {
  /// The name, not encoded.
  public var name: String
  /// The value, not encoded.
  public var value: String
  /// True if another value requests other content, as a page does and a trace number does not.
  /// Identifying parameters are part of a cache's key.
  public var identifies: Bool

  /// Creates a parameter.
  public init(_ name: String, _ value: String, identifies: Bool = true) {
    self.name = name
    self.value = value
    self.identifies = identifies
  }
}

/// The body of a request.
public enum NetworkBody: Sendable, Equatable {
  /// These bytes.
  case bytes([UInt8], contentType: String? = nil)
  /// A file, or these bytes of it, read while it is sent and never as a whole in memory.
  case file(String, range: Range<Int>? = nil, contentType: String? = nil)
  /// A form with fields and files; the form's `Content-Type` replaces that of the request's fields.
  case form(MultipartForm)

  /// The value of `Content-Type`, unless the request's fields have one; for a form it is drawn with
  /// the boundary.
  var contentType: String? {
    switch self {
    case .bytes(_, let type), .file(_, _, let type): type
    case .form: nil
    }
  }
}
