/// A whole answer, whatever its status.
public struct TransportResponse: Sendable, Equatable {
  /// The status code, of the last response when redirects were followed.
  public var status: Int
  /// The fields as received: `Content-Encoding` and `Content-Length` still speak of the wire.
  public var headers: TransportHeaders
  /// The body, decoded from gzip or zstd.
  public var body: [UInt8]

  /// An answer, for transports that stand in.
  public init(status: Int, headers: TransportHeaders = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Whether the status is 2xx.
  public var isSuccess: Bool { 200..<300 ~= status }
}
