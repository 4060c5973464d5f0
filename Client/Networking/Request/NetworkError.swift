/// Why a request brought no answer that its filters accept (seed row S7.3).
public struct NetworkError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The reasons a caller treats differently.
  public enum Kind: Sendable, Equatable {
    /// There is no network, or the server cannot be reached by it: the work is kept, try later.
    case offline
    /// Connected, but the answer or the next part of it did not come in time.
    case timedOut
    /// The connection broke before the whole answer was there.
    case interrupted
    /// TLS failed, or a redirect led from https to http.
    case secureConnectionFailed
    /// No address can be made of the request, or what was made is none.
    case badAddress
    /// The server sends the request on to an address that it may not go to (``RedirectRule``).
    case redirectRefused
    /// The body or the head grew over the request's limit.
    case responseTooLarge
    /// The caller ended it.
    case cancelled
    /// The request may be answered from a cache only (`Cache-Control: only-if-cached`), and nothing
    /// there may serve: what RFC 9111 §5.2.1.7 calls 504. No server was asked.
    case notCached
    /// A filter refused the answer.
    case rejected(status: Int, reason: String)
    /// A file to send cannot be read, or one to receive cannot be written.
    case fileFailed
    /// Anything else, such as a redirect loop or an answer that is not HTTP.
    case other
  }

  /// The reason.
  public let kind: Kind
  /// What happened and with which `host:port`, for a person to read.
  public let message: String
  /// How long the server asked to wait before the next attempt.
  public var retryAfter: Duration?
  /// The answer that was refused, for those who can read more from it.
  public var response: NetworkResponse?

  /// An error, for filters and for clients that stand in.
  public init(
    _ kind: Kind, _ message: String, retryAfter: Duration? = nil, response: NetworkResponse? = nil
  ) {
    self.kind = kind
    self.message = message
    self.retryAfter = retryAfter
    self.response = response
  }

  /// A filter's refusal of `response` and its reason, such as `HTTP 404`.
  public init(rejecting response: NetworkResponse, _ reason: String) {
    self.init(
      .rejected(status: response.status, reason: reason), reason, response: response)
  }

  /// What a transport failed with.
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

  /// Whether the same request may well succeed later.
  public var isTransient: Bool {
    switch kind {
    case .offline, .timedOut, .interrupted: true
    case .rejected(let status, _): RetryPolicy.isTransient(status: status)
    case .secureConnectionFailed, .badAddress, .redirectRefused, .responseTooLarge, .cancelled,
      .notCached, .fileFailed, .other:
      false
    }
  }

  /// The message.
  public var description: String { message }
}
