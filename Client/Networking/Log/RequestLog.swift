import Foundation
import Synchronization

/// Writes the record of one request when the request has ended, once.
final class RequestLog: Sendable {
  private let sink: @Sendable (RequestRecord) -> Void
  private let request: NetworkRequest
  private let instant: @Sendable () -> ContinuousClock.Instant
  private let began: ContinuousClock.Instant
  private let state = Mutex((received: 0, isWritten: false))

  /// Begins to measure a request; `nil` without a sink.
  init?(
    _ request: NetworkRequest, sink: (@Sendable (RequestRecord) -> Void)?,
    instant: @escaping @Sendable () -> ContinuousClock.Instant
  ) {
    guard let sink else { return nil }
    (self.sink, self.request, self.instant, began) = (sink, request, instant, instant())
  }

  /// Counts received bytes of a stream.
  func received(_ bytes: Int) { state.withLock { $0.received += bytes } }

  /// Writes the record of a response.
  func end(_ plan: RequestPlan, _ response: NetworkResponse) {
    let status = response.status
    let outcome: RequestRecord.Outcome =
      switch response.origin {
      case .network: .network(status: status)
      case .cache(let age, isStale: false): .cache(status: status, age: age)
      case .cache(let age, isStale: true): .stale(status: status, age: age)
      }
    received(response.body.count)
    write(plan, outcome)
  }

  /// Writes the record of a failure; `plan` is `nil` for a request without a valid address.
  func end(_ plan: RequestPlan?, _ error: NetworkError) {
    if let body = error.response?.body { received(body.count) }
    write(plan, .failed(reason: error.reason, status: error.response?.status))
  }

  private func write(_ plan: RequestPlan?, _ outcome: RequestRecord.Outcome) {
    let (received, isFirst) = state.withLock { state in
      defer { state.isWritten = true }
      return (state.received, !state.isWritten)
    }
    guard isFirst else { return }
    let transport = plan?.request.transport
    sink(
      RequestRecord(
        method: request.method,
        address: transport.map { RedactedAddress.text($0.url) } ?? "",
        outcome: outcome, duration: began.duration(to: instant()), attempts: plan?.attempts ?? 0,
        bytesSent: transport?.bodyBytes ?? 0, bytesReceived: received))
  }
}

extension TransportRequest {
  /// The bytes of the body; a missing file counts as empty.
  fileprivate var bodyBytes: Int {
    let all = parts.isEmpty ? [file.map { .file($0) } ?? .bytes(body ?? [])] : parts
    return all.reduce(0) { total, part in
      switch part {
      case .bytes(let bytes): return total + bytes.count
      case .file(let slice):
        if let range = slice.range { return total + range.count }
        var status = stat()
        return total + (stat(slice.path, &status) == 0 ? Int(status.st_size) : 0)
      }
    }
  }
}
