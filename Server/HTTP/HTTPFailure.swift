/// A request refused by this layer before any handler sees it.
///
/// libmicrohttpd refuses by itself a request line, header or chunk that it cannot parse, and
/// headers beyond `HTTPServer.headerMemory`. The answer is 400, 413, 414, 431 or 505 with a
/// one-line page.
package enum HTTPFailure: Error, Sendable, Equatable {
  /// The target is not a path, the percent-encoding is not UTF-8, or it has control characters.
  case malformedTarget
  /// The query gives a parameter more than once: proxies and servers would choose differently.
  case repeatedParameter
  /// There is not exactly one `Host`, or the target names another authority (RFC 9112 §3.2).
  case malformedHost
  /// A header's name or value has forbidden bytes; the connection is closed.
  case malformedHeader
  /// A single header occurs more than once; the connection is closed.
  case repeatedHeader
  /// The headers are larger than this server reads; the connection is closed.
  case headersTooLarge
  /// The head of a chunk is longer than this server reads; the connection is closed.
  case malformedChunk
  /// The length is no number, it contradicts the transfer coding, or the coding is not `chunked`.
  /// The connection is closed, because the following bytes could be read in two ways (RFC 9112
  /// §6.3).
  case ambiguousLength
  /// The content is above the limit in bytes, on the wire or after decoding.
  case contentTooLarge(limit: Int)
  /// The content has a coding unknown to this server.
  case unsupportedCoding(String)
  /// The content does not match `Content-Encoding`.
  case malformedContent
  /// A trusted proxy does not name the address of the client.
  case malformedForwarding
  /// The client has as many requests in progress as it may have connections.
  case tooManyRequests
  /// The memory for contents and answers is used up; the same request may succeed a little later.
  case outOfMemory

  /// The matching status (RFC 9110 §15.5).
  package var status: Int {
    switch self {
    case .malformedTarget, .repeatedParameter, .malformedHost, .malformedHeader, .repeatedHeader,
      .malformedChunk, .ambiguousLength, .malformedContent, .malformedForwarding:
      400
    case .tooManyRequests: 429
    case .headersTooLarge: 431
    case .outOfMemory: 503
    case .contentTooLarge: 413
    case .unsupportedCoding: 415
    }
  }

  /// One sentence for the client.
  package var detail: String {
    switch self {
    case .malformedTarget: "The request target is not a well-formed path."
    case .repeatedParameter: "The query gives a parameter more than once; give each once."
    case .repeatedHeader:
      "A header that may occur once, such as Authorization, occurs more often; send it once."
    case .malformedHost: "The request needs one Host header that agrees with its target."
    case .malformedHeader: "A header is not well formed."
    case .headersTooLarge: "The headers exceed this server's limit."
    case .malformedChunk: "The content's chunks are not well formed."
    case .ambiguousLength:
      "The content's length is not one whole number, or contradicts Transfer-Encoding."
    case .contentTooLarge(let limit): "The content is larger than \(limit) bytes."
    case .unsupportedCoding(let coding): "The content coding \(coding) is not supported."
    case .malformedContent: "The content does not match its Content-Encoding."
    case .malformedForwarding:
      "The proxy does not name the address of its client: check its configuration."
    case .tooManyRequests:
      "Your address has as many requests in progress as it may have connections; wait for one."
    case .outOfMemory:
      "The server's memory is in use; send the request again in a moment."
    }
  }
}
