/// A whole answer and the origin.
public struct NetworkResponse: Sendable, Equatable {
  /// The origin of an answer.
  public enum Origin: Sendable, Equatable {
    /// From the server, just now.
    case network
    /// A cache, `age` after the server gave or confirmed the answer.
    ///
    /// A stale answer is older than its rule permits and serves because the server is unreachable.
    case cache(age: Duration, isStale: Bool)
  }

  /// The status code.
  public var status: Int
  /// The fields as received: `Content-Encoding` and `Content-Length` still describe the encoded
  /// body.
  public var headers: TransportHeaders
  /// The body, decoded from gzip or zstd; empty if it was written to a file.
  public var body: [UInt8]
  /// The origin of the answer.
  public var origin: Origin

  /// Creates an answer, for caches and filters.
  public init(
    status: Int, headers: TransportHeaders = [:], body: [UInt8] = [], origin: Origin = .network
  ) {
    self.status = status
    self.headers = headers
    self.body = body
    self.origin = origin
  }

  /// True if the status is 2xx.
  public var isSuccess: Bool { 200..<300 ~= status }
}
