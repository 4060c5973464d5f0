import FerryNetworking

/// A server that never answers, and reports each request.
struct WaitingServer: Transport {
  /// Gets an element for each request.
  let requests: AsyncStream<Void>
  private let request: AsyncStream<Void>.Continuation

  init() { (requests, request) = AsyncStream.makeStream() }

  /// Returns when there is a request.
  func isAsked() async { for await _ in requests { return } }

  func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    self.request.yield()
    let (never, end) = AsyncStream<Void>.makeStream()
    for await _ in never {}
    end.finish()
    throw TransportError(.cancelled, "cancelled")
  }

  func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
    throw TransportError(.offline, "no streams")
  }
}
