/// Decides whether a request may follow a redirect to an address: a pure rule.
package struct RedirectCheck {
  package let request: TransportRequest
  /// The address of the request itself.
  package let first: RequestAddress

  /// Creates the check of a request.
  package init(request: TransportRequest, first: RequestAddress) {
    (self.request, self.first) = (request, first)
  }

  /// Returns why the request may not follow a redirect to `next`, or `nil` if it may.
  ///
  /// - Parameters:
  ///   - previous: the address before this one.
  ///   - sendsBody: true if the request still has a body: a 303 removes it.
  package func refusal(
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
        .redirectRefused, "\(from) redirects to \(next.endpoint): not followed, because \(reason)")
    }
    if request.redirects == .withinOrigin {
      return refused("the request is for \(from) only")
    }
    if sendsBody { return refused("the request's body is for \(from) only") }
    if let name = request.privateFields.first {
      return refused("the field \(name) is for \(from) only")
    }
    return nil
  }
}
