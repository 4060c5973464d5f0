/// One place that every request goes through, uploads and downloads included.
///
/// `CurlTransport` is the one that ships; a URLSession transport or a simulated network can stand
/// in. Statuses are answers, not errors: only an exchange without an answer throws.
public protocol Transport: Sendable {
  /// Performs one exchange and answers with the whole response.
  ///
  /// Cancelling the calling task ends the transfer at once with kind `cancelled`.
  func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse

  /// Performs one exchange and answers as soon as the response's head has arrived.
  ///
  /// `timeout` limits each silence instead of the whole exchange, and `responseLimit` does not
  /// apply: the consumer's pace does. Leaving the body ends the transfer.
  func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream
}
