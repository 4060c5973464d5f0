/// The one interface for every request, uploads and downloads included.
///
/// `CurlTransport` is the built-in implementation; a URLSession transport or a simulated network
/// can replace it. Statuses are answers, not errors: only an exchange without an answer throws.
public protocol Transport: Sendable {
  /// Performs one exchange and returns the whole response.
  ///
  /// Cancelling the calling task ends the transfer at once with kind `cancelled`.
  func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse

  /// Performs one exchange and returns as soon as the response's head has arrived.
  ///
  /// `timeout` limits each silence instead of the whole exchange. `responseLimit` does not apply,
  /// because the consumer sets the pace. Leaving the body ends the transfer.
  func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream

  /// Sends a request as `send(_:)` does, and reports progress.
  func send(
    _ request: TransportRequest, progress: TransportProgressHandler?
  ) async throws(TransportError) -> TransportResponse

  /// Opens a stream as `stream(_:)` does, and reports progress until the body has ended.
  func stream(
    _ request: TransportRequest, progress: TransportProgressHandler?
  ) async throws(TransportError) -> TransportStream
}

// The defaults for a transport without progress: they report the end alone, or nothing.
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
