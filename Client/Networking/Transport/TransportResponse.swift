/// A whole answer with any status.
public struct TransportResponse: Sendable, Equatable {
  /// The status code; after redirects, the one of the last response.
  public var status: Int
  /// The fields as received: `Content-Encoding` and `Content-Length` still describe the encoded
  /// body.
  public var headers: TransportHeaders
  /// The body, decoded from gzip or zstd.
  public var body: [UInt8]

  /// Creates an answer, also for other transports.
  public init(status: Int, headers: TransportHeaders = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// True if the status is 2xx.
  public var isSuccess: Bool { 200..<300 ~= status }
}
