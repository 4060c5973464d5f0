/// Accepts, alters or refuses answers: the one place where a kind of answer is judged, instead of
/// every caller (seed rows S7.1, S7.3).
///
/// The client's base filter comes first, the request's own second. Of streams and downloads a
/// filter sees the head with an empty body; what it makes of the body has no effect there.
public protocol ResponseFilter: Sendable {
  /// Answers with what the caller gets.
  ///
  /// - Throws: why it is refused, mostly ``NetworkError/init(rejecting:_:)``. A transient error is
  ///   tried again by the request's retry policy.
  func check(
    _ response: NetworkResponse, for request: NetworkRequest
  ) throws(NetworkError) -> NetworkResponse
}
