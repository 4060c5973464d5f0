/// Accepts, alters or rejects answers: the one place for the check of a kind of answer, instead of
/// every caller.
///
/// The client's base filter comes first, the request's own second. For streams and downloads a
/// filter gets the head with an empty body; a changed body has no effect there.
public protocol ResponseFilter: Sendable {
  /// Returns the answer for the caller.
  ///
  /// - Throws: the reason of a rejection, mostly ``NetworkError/init(rejecting:_:)``. The request's
  ///   retry policy repeats the request after a transient error.
  func check(
    _ response: NetworkResponse, for request: NetworkRequest
  ) throws(NetworkError) -> NetworkResponse
}
