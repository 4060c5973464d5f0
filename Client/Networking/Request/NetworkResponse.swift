/// A whole answer and where it came from.
public struct NetworkResponse: Sendable, Equatable {
  /// Where an answer came from.
  public enum Origin: Sendable, Equatable {
    /// From the server, just now.
    case network
    /// From a cache, `age` after the server gave or confirmed it.
    ///
    /// A stale one is older than its rule allows and serves because the server cannot be reached.
    case cache(age: Duration, isStale: Bool)
  }

  /// The status code.
  public var status: Int
  /// The fields as received: `Content-Encoding` and `Content-Length` still speak of the wire.
  public var headers: TransportHeaders
  /// The body, decoded from gzip or zstd; empty for what was written to a file.
  public var body: [UInt8]
  /// Where it came from.
  public var origin: Origin

  /// An answer, for caches and filters.
  public init(
    status: Int, headers: TransportHeaders = [:], body: [UInt8] = [], origin: Origin = .network
  ) {
    self.status = status
    self.headers = headers
    self.body = body
    self.origin = origin
  }

  /// Whether the status is 2xx.
  public var isSuccess: Bool { 200..<300 ~= status }
}
