/// The failure of a call, as sent to the page: a stable code and a text for the user.
///
/// A handler can throw one with another code, such as `ServiceError("sold_out", "…")`.
public struct ServiceError: Error, Sendable, Equatable, CustomStringConvertible {
  /// A stable name in `snake_case`.
  public var code: String
  /// A description in one sentence.
  public var message: String

  /// Creates a failure.
  public init(_ code: String, _ message: String) {
    self.code = code
    self.message = message
  }

  public var description: String { message }

  /// The request is not one of the bridge's.
  static func badRequest(_ reason: String) -> ServiceError { ServiceError("bad_request", reason) }

  /// The call was cancelled by the page, or the page is gone.
  static let cancelled = ServiceError("cancelled", "the call was cancelled")
}

/// An error with an explanation for a page.
package protocol ServiceErrorConvertible: Error {
  /// The explanation for the page.
  var serviceError: ServiceError { get }
}

extension ServiceError {
  /// Explains any error. An error of an unknown type reveals nothing of itself to the page.
  init(_ error: any Error) {
    switch error {
    case let error as ServiceError: self = error
    case let error as any ServiceErrorConvertible: self = error.serviceError
    case is CancellationError: self = .cancelled
    default: self.init("failed", "the service failed; the program's log has the reason")
    }
  }
}
