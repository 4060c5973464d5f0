/// Whether a request may go on to the address that a server names: a pure rule.
struct RedirectCheck {
  let request: TransportRequest
  /// The address of the request itself.
  let first: RequestAddress

  /// Why the request may not go to `next`, or nil when it may.
  ///
  /// - Parameters:
  ///   - previous: the address before this one.
  ///   - sendsBody: whether the request still carries its body: a 303 takes it away.
  func refusal(
    of next: RequestAddress, after previous: RequestAddress, sendsBody: Bool
  ) -> TransportError? {
    let from = first.endpoint
    if previous.isSecure && !next.isSecure {
      return TransportError(
        .secureConnectionFailed,
        "\(from) redirects to the unencrypted \(next.endpoint): not followed")
    }
    if next.hasSameOrigin(as: first) { return nil }
    func refused(_ reason: String) -> TransportError {
      TransportError(
        .redirectRefused, "\(from) redirects to \(next.endpoint): not followed, since \(reason)")
    }
    if request.redirects == .withinOrigin {
      return refused("what is sent is for \(from) alone")
    }
    if sendsBody { return refused("the request's body is for \(from) alone") }
    if let name = request.privateFields.first {
      return refused("the field \(name) is for \(from) alone")
    }
    return nil
  }
}
