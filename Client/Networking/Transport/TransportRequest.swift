/// The request methods of RFC 9110 and RFC 5789 used by Ferry.
public enum TransportMethod: String, Sendable {
  /// Reads.
  case get = "GET"
  /// Reads the head alone.
  case head = "HEAD"
  /// Submits; the body may be empty.
  case post = "POST"
  /// Replaces.
  case put = "PUT"
  /// Changes a part (RFC 5789).
  case patch = "PATCH"
  /// Removes.
  case delete = "DELETE"
}

/// A request for one exchange; everything but the address has a default.
public struct TransportRequest: Sendable, Equatable {
  /// The method; redirects are followed for GET, HEAD and POST only.
  public var method: TransportMethod
  /// The absolute address, `http://` or `https://`.
  public var url: String
  /// Fields to send. The transport sets `Accept-Encoding` itself; if a request names it, the body
  /// arrives undecoded.
  public var headers: TransportHeaders
  /// The body to send, if any.
  public var body: [UInt8]?
  /// A file to send as the body, in parts and with its length; replaces `body`.
  public var file: FileSlice?
  /// Parts to send one after another as the body, with the length; they replace `body` and `file`.
  public var parts: [BodyPart] = []
  /// The limit for the whole exchange; for streams, for each silence.
  public var timeout: Duration
  /// The limit for reaching the server: name, connection and TLS together.
  public var connectTimeout: Duration
  /// The largest response body accepted, in bytes after decompression.
  public var responseLimit: Int
  /// The permitted targets of redirects.
  public var redirects = RedirectRule.follow
  /// The addresses that the request and redirects may connect to.
  public var destinations = DestinationRule.any
  /// Names of secret fields besides `Authorization` and `Cookie`. Those two never go to another
  /// origin; with one of these fields, a redirect to another origin fails.
  public var privateFields: [String] = []
  /// For streams: the least bytes a second of a body, over each `timeout`. `nil` for a body that
  /// may be silent for long, such as a stream of events.
  public var minimumRate: Int?
  /// A PEM file of certificate authorities to trust besides the system's; `nil` for the
  /// transport's.
  public var certificateAuthorities: String?

  /// Creates a request for `url`; the defaults suit small JSON exchanges.
  public init(
    _ method: TransportMethod = .get, _ url: String, headers: TransportHeaders = [:],
    body: [UInt8]? = nil, file: FileSlice? = nil, timeout: Duration = .seconds(60),
    connectTimeout: Duration = .seconds(10), responseLimit: Int = 64 << 20
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.file = file
    self.timeout = timeout
    self.connectTimeout = connectTimeout
    self.responseLimit = responseLimit
  }
}

extension TransportRequest {
  /// True if the request has a body, be it empty.
  package var hasBody: Bool { body != nil || file != nil || !parts.isEmpty }
}

/// The addresses that a server may redirect a request to. In all cases: none from https to http, at
/// most five, and no body to another origin (scheme, host and port).
public enum RedirectRule: Sendable, Equatable {
  /// Any origin, without credentials.
  case follow
  /// The origin of the request only.
  case withinOrigin
}
