/// The reason why an exchange has no answer.
public struct TransportError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The reasons that callers treat differently.
  public enum Kind: String, Sendable {
    /// Unresolvable, refused or unreachable: the work is kept, try later.
    case offline
    /// Connected, but the answer or the next part of it did not arrive in time.
    case timedOut
    /// The connection broke before the whole answer arrived.
    case interrupted
    /// TLS failed, or a redirect led from https to http.
    case secureConnectionFailed
    /// Not an absolute http or https address.
    case badAddress
    /// The server redirects the request to a forbidden address (``RedirectRule``).
    case redirectRefused
    /// The body or the head exceeded the request's limit.
    case responseTooLarge
    /// The caller cancelled the exchange.
    case cancelled
    /// The file to send cannot be read.
    case fileFailed
    /// Anything else, such as a redirect loop or an answer other than HTTP.
    case other
  }

  /// The reason.
  public let kind: Kind
  /// A description with the `host:port`, for the user.
  public let message: String

  /// True if the server spoke TLS: only the certificate or the kind of TLS was refused.
  package let isOfTLS: Bool

  /// Creates an error, also for other transports.
  public init(_ kind: Kind, _ message: String) {
    self.init(kind, message, isOfTLS: false)
  }

  package init(_ kind: Kind, _ message: String, isOfTLS: Bool) {
    self.kind = kind
    self.message = message
    self.isOfTLS = isOfTLS
  }

  /// True if the same request may succeed later.
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
