/// The reason why an S3-compatible store did not do as requested.
package enum ObjectStoreError: Error, Sendable, Equatable, CustomStringConvertible {
  /// A setting cannot be used.
  case configuration(String)
  /// There was no answer, or only a part of one.
  case unreachable(String, isTransient: Bool)
  /// The store answered with an error.
  case refused(status: Int, code: String, message: String)
  /// The answer is not one of an S3-compatible store.
  case malformed(String)
  /// The caller ended it.
  case cancelled

  package var description: String {
    switch self {
    case .configuration(let reason), .unreachable(let reason, _), .malformed(let reason): reason
    case .refused(_, "NoSuchBucket", _): "there is no such bucket (NoSuchBucket)"
    case .refused(_, "InvalidAccessKeyId", _):
      "the store does not know the access key (InvalidAccessKeyId)"
    case .refused(_, "SignatureDoesNotMatch", _):
      "the secret key does not belong to the access key (SignatureDoesNotMatch)"
    case .refused(_, "AccessDenied", _):
      "the key may not do this (AccessDenied)"
    case .refused(let status, let code, let message):
      "the store answered \(status)" + (code.isEmpty ? "" : " \(code)")
        + (message.isEmpty ? "" : ": \(message)")
    case .cancelled: "interrupted"
    }
  }

  /// True if the same request may succeed in a moment.
  var isTransient: Bool {
    switch self {
    case .unreachable(_, let isTransient): isTransient
    case .refused(let status, let code, _):
      [429, 500, 502, 503, 504].contains(status)
        || ["SlowDown", "InternalError", "RequestTimeout", "ServiceUnavailable"].contains(code)
    case .configuration, .malformed, .cancelled: false
    }
  }

  /// True if another key may succeed. An expired key is refused with status 400; the answer to HEAD
  /// has no code.
  var isAboutKey: Bool {
    guard case .refused(let status, let code, _) = self else { return false }
    return [401, 403].contains(status) || ["ExpiredToken", "InvalidToken"].contains(code)
      || (status == 400 && code.isEmpty)
  }

  /// Creates the error of an answer. HEAD has no content, so only the status has the reason.
  init(status: Int, body: [UInt8]) {
    let error = ObjectStoreXML(body).flatMap { $0.name == "Error" ? $0 : nil }
    func text(_ name: String, _ limit: Int) -> String {
      let text = error?.first(name)?.text ?? ""
      return String(
        String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 0x20 }.prefix(limit)))
    }
    self = .refused(status: status, code: text("Code", 60), message: text("Message", 200))
  }
}

/// The pauses between the attempts at a request; pure.
package enum ObjectStoreRetry {
  static let attemptsMax = 4

  /// Returns the pause before the next attempt; `nil` if there is none.
  ///
  /// - Parameter attempt: The number of the failed attempt, from 1 on.
  package static func pause(after attempt: Int, _ error: ObjectStoreError) -> Duration? {
    guard error.isTransient, attempt < attemptsMax else { return nil }
    return .milliseconds(100) * [1, 3, 9][attempt - 1]
  }
}
