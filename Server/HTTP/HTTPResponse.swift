/// A handler's answer.
package struct HTTPResponse: Sendable {
  /// The source of the content.
  package enum Body: Sendable {
    /// Known in full; sent with `Content-Length`.
    case bytes([UInt8])
    /// A stretch of a file, sent with `Content-Length` and without copying it through this
    /// process. The connection is cut off when the file becomes too short meanwhile.
    case file(FileContent)
    /// Stretches of memory and files in turn, sent with `Content-Length`.
    case segments(SegmentedContent)
    /// Written over time; sent in chunks until the stream finishes.
    case stream(HTTPStream)
    /// Written over time, and of a known size; sent with `Content-Length`. The connection is cut
    /// off if the stream ends early.
    case relay(HTTPStream, count: Int)
  }

  /// 200…599.
  package var status: Int
  /// Do not set `Content-Length`, `Transfer-Encoding`, `Connection` or `Date`: the server does.
  package var headers: HTTPHeaders
  package var body: Body
  /// True if the server may apply a content coding. Leave it false for ranges and for compressed
  /// content. A strong `ETag` is made weak when a coding is applied (RFC 9110 §8.8.3).
  package var compressible: Bool
  /// The account for the memory of the answer until it is sent; `nil` for none.
  package var account: String?
  /// The memory reserved for it already. While memory is scarce, the client has to read.
  package var share: MemoryShare?
  /// Memory of the work for the answer, until the answer's own share is reserved.
  package var work: MemoryGrant?

  package init(
    status: Int, headers: HTTPHeaders = [:], body: Body = .bytes([]), compressible: Bool = false
  ) {
    self.status = status
    self.headers = headers
    self.body = body
    self.compressible = compressible
  }
}

/// A function to answer one request. It runs as a separate task, which is cancelled when the server
/// stops waiting.
package typealias HTTPHandler = @Sendable (HTTPRequest) async -> HTTPResponse
