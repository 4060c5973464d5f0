import FerryPlatform
import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// Turns URLSession's errors into those of a transport.
enum SessionFailure {
  /// Returns the error of a transfer.
  static func error(
    _ failure: any Error, at endpoint: String
  ) -> TransportError {
    let reason = failure.localizedDescription
    let code = (failure as? URLError)?.code
    switch kind(code) ?? kind(text: reason) {
    case .offline:
      return TransportError(.offline, "cannot reach \(endpoint): \(reason)")
    case .timedOut:
      return TransportError(.timedOut, "no complete answer from \(endpoint)")
    case .interrupted:
      return TransportError(
        .interrupted, "the connection to \(endpoint) broke: \(reason)")
    case .secureConnectionFailed:
      return TransportError(
        .secureConnectionFailed, "no secure connection to \(endpoint): \(reason)",
        isOfTLS: code != .secureConnectionFailed)
    case let kind:
      return TransportError(kind, "\(endpoint): \(reason)")
    }
  }

  /// Returns the kind of an error by the code; `nil` if the code does not show it.
  static func kind(_ code: URLError.Code?) -> TransportError.Kind? {
    switch code {
    case .cannotFindHost?, .dnsLookupFailed?, .cannotConnectToHost?, .notConnectedToInternet?,
      .internationalRoamingOff?, .callIsActive?, .dataNotAllowed?:
      .offline
    case .timedOut?: .timedOut
    case .networkConnectionLost?: .interrupted
    case .secureConnectionFailed?, .serverCertificateHasBadDate?, .serverCertificateUntrusted?,
      .serverCertificateHasUnknownRoot?, .serverCertificateNotYetValid?,
      .clientCertificateRejected?, .clientCertificateRequired?,
      .appTransportSecurityRequiresSecureConnection?:
      .secureConnectionFailed
    case .badURL?: .badAddress
    case .dataLengthExceedsMaximum?: .responseTooLarge
    case .cancelled?: .cancelled
    default: nil
    }
  }

  /// Returns the kind of an error by the text: Foundation for Linux has one code for most of curl's
  /// errors, and curl's text.
  static func kind(text: String) -> TransportError.Kind {
    // No code: see above. curl has no translations.
    let text = text.lowercasedASCII
    func contains(_ words: String...) -> Bool { words.contains { text.contains($0) } }
    if contains("ssl", "tls", "certificate") { return .secureConnectionFailed }
    if contains("transfer closed", "recv failure", "send failure", "empty reply", "reset") {
      return .interrupted
    }
    if contains("too large", "exceed") { return .responseTooLarge }
    return .other
  }
}
