import FerryHTTPServer
import FerryProtocol

extension Problem {
  /// Seconds before a client tries again, at least.
  static let retryAfter = "1"

  /// Returns the problem as an answer: a problem document, and `Retry-After` if trying again may
  /// help.
  package func response(headers: HTTPHeaders = [:]) -> HTTPResponse {
    var headers = headers
    headers["Content-Type"] = Problem.mediaType
    headers["Cache-Control"] = "no-store"
    if code.action == .retry, code != .internalError, headers["Retry-After"] == nil {
      headers["Retry-After"] = Self.retryAfter
    }
    return HTTPResponse(
      status: code.status, headers: headers, body: .bytes(encoded()), compressible: true)
  }

  /// Maps a failure of the HTTP layer from before a handler saw the request.
  package init(_ failure: HTTPFailure) {
    switch failure {
    case .contentTooLarge: self.init(.limitExceeded, failure.detail)
    case .unsupportedCoding: self.init(.unsupportedCoding, failure.detail)
    case .outOfMemory: self.init(.unavailable, failure.detail)
    case .tooManyRequests: self.init(.rateLimited, failure.detail)
    case .malformedTarget, .repeatedParameter, .malformedHost, .malformedHeader, .repeatedHeader,
      .malformedChunk, .headersTooLarge, .ambiguousLength, .malformedContent, .malformedForwarding:
      self.init(.malformedMessage, failure.detail)
    }
  }
}
