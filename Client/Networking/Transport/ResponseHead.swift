/// The head of a response.
package struct ResponseHead: Sendable, Equatable {
  package var status: Int
  package var headers: TransportHeaders

  /// Creates a head.
  package init(status: Int, headers: TransportHeaders = [:]) {
    (self.status, self.headers) = (status, headers)
  }

  /// Returns true if another response follows: after an interim one (1xx), or after a redirect to
  /// follow.
  package func isPassing(followsRedirects: Bool) -> Bool {
    if status < 200 { return status != 101 }
    return followsRedirects && 300..<400 ~= status && headers["Location"]?.isEmpty == false
  }
}
