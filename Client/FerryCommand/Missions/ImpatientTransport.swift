import Ferry
import Synchronization

/// Waits for an answer for a while, and after the first that did not come for none any more: for
/// what a command can do without.
final class ImpatientTransport: Transport {
  private let transport: any Transport
  /// How long an exchange may take.
  private let patience: Duration
  private let failure = Mutex<TransportError?>(nil)

  init(_ transport: any Transport, patience: Duration) {
    (self.transport, self.patience) = (transport, patience)
  }

  func send(_ request: TransportRequest) async throws(TransportError) -> TransportResponse {
    if let failure = failure.withLock({ $0 }) { throw failure }
    do {
      return try await transport.send(limited(request))
    } catch {
      if error.kind == .timedOut { failure.withLock { $0 = error } }
      throw error
    }
  }

  func stream(_ request: TransportRequest) async throws(TransportError) -> TransportStream {
    try await transport.stream(limited(request))
  }

  private func limited(_ request: TransportRequest) -> TransportRequest {
    var request = request
    request.timeout = min(request.timeout, patience)
    return request
  }
}
