/// Why an exchange brought no answer.
public struct TransportError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The reasons a caller treats differently.
  public enum Kind: String, Sendable {
    /// Unresolvable, refused or unreachable: the work is kept, try later.
    case offline
    /// Connected, but the answer or the next part of it did not come in time.
    case timedOut
    /// The connection broke before the whole answer was there.
    case interrupted
    /// TLS failed, or a redirect led from https to http.
    case secureConnectionFailed
    /// Not an absolute http or https address.
    case badAddress
    /// The server sends the request on to an address that it may not go to (``RedirectRule``).
    case redirectRefused
    /// The body or the head grew over the request's limit.
    case responseTooLarge
    /// The caller ended it.
    case cancelled
    /// The file to send cannot be read.
    case fileFailed
    /// Anything else, such as a redirect loop or an answer that is not HTTP.
    case other
  }

  /// The reason.
  public let kind: Kind
  /// What happened and with which `host:port`, for a person to read.
  public let message: String

  /// An error, for transports that stand in as well.
  public init(_ kind: Kind, _ message: String) {
    self.kind = kind
    self.message = message
  }

  /// Whether the same request may well succeed later.
  public var isTransient: Bool {
    switch kind {
    case .offline, .timedOut, .interrupted: true
    case .secureConnectionFailed, .badAddress, .redirectRefused, .responseTooLarge, .cancelled,
      .fileFailed, .other:
      false
    }
  }

  /// The message.
  public var description: String { message }
}
