/// The reason why a request has no accepted answer.
public struct NetworkError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The reasons that callers treat differently.
  public enum Kind: Sendable, Equatable {
    /// There is no network, or the server is unreachable over it: the work is kept, try later.
    case offline
    /// Connected, but the answer or the next part of it did not arrive in time.
    case timedOut
    /// The connection broke before the whole answer arrived.
    case interrupted
    /// TLS failed, or a redirect led from https to http.
    case secureConnectionFailed
    /// The request has no valid address.
    case badAddress
    /// The server redirects the request to a forbidden address (``RedirectRule``).
    case redirectRefused
    /// The body or the head exceeded the request's limit.
    case responseTooLarge
    /// The caller cancelled the request.
    case cancelled
    /// Only a cache may answer the request (`Cache-Control: only-if-cached`), and it has no usable
    /// answer: the 504 of RFC 9111 §5.2.1.7. No server was asked.
    case notCached
    /// A filter rejected the answer.
    case rejected(status: Int, reason: String)
    /// A successful response has a media type not accepted by the request; `nil` if it has none.
    case unacceptable(contentType: String?)
    /// The envelope of a successful response contains an error of the server's own, with the code.
    case business(code: String)
    /// The response is not the caller's type.
    case undecodable
    /// A file to send cannot be read, or a file to receive cannot be written.
    case fileFailed
    /// Anything else, such as a redirect loop or an answer other than HTTP.
    case other
  }

  /// The reason.
  public let kind: Kind
  /// A description with the `host:port`, for the user.
  public let message: String
  /// The server's requested pause before the next attempt.
  public var retryAfter: Duration?
  /// The rejected answer, for callers that can read more from it.
  public var response: NetworkResponse?

  /// Creates an error, for filters and for replacements of the client.
  public init(
    _ kind: Kind, _ message: String, retryAfter: Duration? = nil, response: NetworkResponse? = nil
  ) {
    self.kind = kind
    self.message = message
    self.retryAfter = retryAfter
    self.response = response
  }

  /// Creates a filter's rejection of `response` with the reason, such as `HTTP 404`.
  public init(rejecting response: NetworkResponse, _ reason: String) {
    self.init(
      .rejected(status: response.status, reason: reason), reason, response: response)
  }

  /// Creates an error from a transport's.
  public init(_ error: TransportError) {
    let kind: Kind =
      switch error.kind {
      case .offline: .offline
      case .timedOut: .timedOut
      case .interrupted: .interrupted
      case .secureConnectionFailed: .secureConnectionFailed
      case .badAddress: .badAddress
      case .redirectRefused: .redirectRefused
      case .responseTooLarge: .responseTooLarge
      case .cancelled: .cancelled
      case .fileFailed: .fileFailed
      case .other: .other
      }
    self.init(kind, error.message)
  }

  /// True if the same request may succeed later.
  public var isTransient: Bool {
    switch kind {
    case .offline, .timedOut, .interrupted: true
    case .rejected(let status, _): RetryPolicy.isTransient(status: status)
    case .secureConnectionFailed, .badAddress, .redirectRefused, .responseTooLarge, .cancelled,
      .notCached, .unacceptable, .business, .undecodable, .fileFailed, .other:
      false
    }
  }

  /// The message.
  public var description: String { message }
}
