import Foundation

/// A description and a remedy for the app's user. `failureReason` has the host and the reason, for the
/// app's developers.
extension NetworkError: LocalizedError {
  public var errorDescription: String? {
    switch kind {
    case .offline: "The server cannot be reached."
    case .timedOut: "The server does not answer in time."
    case .interrupted: "The connection broke off."
    case .secureConnectionFailed: "There is no secure connection to the server."
    case .badAddress: "The server's address is not valid."
    case .redirectRefused, .unacceptable, .undecodable, .other:
      "Another server has answered, or a network's sign-in page."
    case .responseTooLarge: "The server's answer is too large for this device."
    case .cancelled: "The work was cancelled."
    case .notCached: "This is not available without the network."
    case .rejected, .business: "The server rejects the request."
    case .fileFailed: "A file cannot be read or written."
    }
  }

  public var failureReason: String? { message }

  public var recoverySuggestion: String? {
    switch kind {
    case .offline, .timedOut, .interrupted, .cancelled: "Try again later."
    case .secureConnectionFailed: "Check the clock of this device, or use another network."
    case .badAddress: "Check the address."
    case .notCached: "Connect to a network, and try again."
    case .redirectRefused, .unacceptable, .undecodable, .other:
      "Sign in to the network if it asks for that, and try again."
    case .responseTooLarge, .rejected, .business:
      "If this does not pass, contact the app's support."
    case .fileFailed: "Free some disk space, and try again."
    }
  }
}
