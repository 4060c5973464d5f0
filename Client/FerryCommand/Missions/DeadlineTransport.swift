import Ferry
import Synchronization

/// A transport with a deadline, for optional requests of a command. After the first missing answer
/// it waits for none.
final class DeadlineTransport: Transport {
  private let transport: any Transport
  /// The longest duration of an exchange.
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
