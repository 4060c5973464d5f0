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

  /// The same as `send(_:)`, telling how far it is.
  func send(
    _ request: TransportRequest, progress: TransportProgressHandler?
  ) async throws(TransportError) -> TransportResponse

  /// The same as `stream(_:)`, telling how far it is until the body has ended.
  func stream(
    _ request: TransportRequest, progress: TransportProgressHandler?
  ) async throws(TransportError) -> TransportStream
}

// What a transport without a view of its progress does: it tells of the end alone, or nothing.
extension Transport {
  public func send(
    _ request: TransportRequest, progress: TransportProgressHandler?
  ) async throws(TransportError) -> TransportResponse {
    let response = try await send(request)
    let (sent, received) = (request.body?.count, response.body.count)
    progress?(
      TransportProgress(
        sent: sent ?? 0, sentTotal: sent, received: received, receivedTotal: received))
    return response
  }

  public func stream(
    _ request: TransportRequest, progress: TransportProgressHandler?
  ) async throws(TransportError) -> TransportStream {
    try await stream(request)
  }
}
