/// A request that this layer refuses before any handler sees it.
///
/// What libmicrohttpd refuses by itself (a request line or header it cannot parse, headers beyond
/// `HTTPServer.headerMemory`, HTTP/1.1 without `Host`) is answered by it with 400, 414 or 431
/// and a one-line page.
package enum HTTPFailure: Error, Sendable, Equatable {
  /// The target is not a path, or its percent-encoding is not UTF-8.
  case malformedTarget
  /// Length and transfer coding contradict each other, or the coding is not `chunked`; the
  /// connection is closed, for what follows on it could be read in two ways (RFC 9112 §6.3).
  case ambiguousLength
  /// The content is above the limit in bytes, on the wire or after decoding.
  case contentTooLarge(limit: Int)
  /// The content is coded in a way that this server does not know.
  case unsupportedCoding(String)
  /// The content is not what its `Content-Encoding` says.
  case malformedContent

  /// The status that fits (RFC 9110 §15.5).
  package var status: Int {
    switch self {
    case .malformedTarget, .ambiguousLength, .malformedContent: 400
    case .contentTooLarge: 413
    case .unsupportedCoding: 415
    }
  }

  /// One sentence for the client.
  package var detail: String {
    switch self {
    case .malformedTarget: "The request target is not a well-formed path."
    case .ambiguousLength: "Content-Length and Transfer-Encoding do not agree."
    case .contentTooLarge(let limit): "The content is larger than \(limit) bytes."
    case .unsupportedCoding(let coding): "The content coding \(coding) is not supported."
    case .malformedContent: "The content does not match its Content-Encoding."
    }
  }
}
