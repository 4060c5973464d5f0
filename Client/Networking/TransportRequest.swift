/// The request methods of RFC 9110 and RFC 5789 in use here.
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

/// What one exchange needs; everything but the address has a default.
public struct TransportRequest: Sendable, Equatable {
  /// The method; redirects are followed for GET, HEAD and POST only.
  public var method: TransportMethod
  /// The absolute address, `http://` or `https://`.
  public var url: String
  /// Fields to send. `Accept-Encoding` is the transport's own: naming it asks for the body as it
  /// is on the wire, undecoded.
  public var headers: TransportHeaders
  /// The body to send, if any.
  public var body: [UInt8]?
  /// A file to send as the body, in parts and with its length; takes the place of `body`.
  public var file: FileSlice?
  /// The limit for the whole exchange; for streams, for each silence.
  public var timeout: Duration
  /// The limit for reaching the server: name, connection and TLS together.
  public var connectTimeout: Duration
  /// The largest response body accepted, in bytes after decompression.
  public var responseLimit: Int

  /// A request for `url`; the defaults suit small JSON exchanges.
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
