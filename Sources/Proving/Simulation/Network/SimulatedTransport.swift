import FerryConformance
import FerryHTTPServer
import FerryNetworking

/// A device's transport, as ``CurlTransport`` is in the product.
package final class SimulatedTransport: Transport {
  private let network: SimulatedNetwork
  private let link: NetworkLink
  /// Returns the observer of the content from an address.
  private let observer: (@Sendable (String) -> BlobConnection.Observer?)?

  package convenience init(_ network: SimulatedNetwork, link: NetworkLink) {
    self.init(network, link: link, observer: nil)
  }

  init(
    _ network: SimulatedNetwork, link: NetworkLink,
    observer: (@Sendable (String) -> BlobConnection.Observer?)?
  ) {
    self.network = network
    self.link = link
    self.observer = observer
  }

  package func send(
    _ request: TransportRequest
  ) async throws(TransportError) -> TransportResponse {
    let pending = PendingExchange<TransportResponse>(network.scheduler)
    return try await pending.value(within: request.timeout) { [network, link] in
      let label = Self.label(of: request)
      network.deliver(request, over: link, label: label) {
        pending.finish(.failure($0))
      } arrived: {
        response, generation, message in
        network.carryBack(response, generation, over: link, message: message, label: label) {
          pending.finish($0)
        }
      }
    }
  }

  package func stream(
    _ request: TransportRequest
  ) async throws(TransportError) -> TransportStream {
    let pending = PendingExchange<TransportStream>(network.scheduler)
    let isContent = request.url.contains("/v1/blobs/")
    return try await pending.value(within: request.timeout) { [network, link, observer] in
      network.deliver(request, over: link, label: isContent ? "fetch" : "listen") {
        pending.finish(.failure($0))
      } arrived: { response, generation, message in
        if isContent {
          return network.carryContent(
            response, generation, over: link, message: message, silence: request.timeout,
            observer: observer?(request.url)
          ) { pending.finish($0) }
        }
        guard case .stream(let stream) = response.body else {
          let body = TransportBody(next: { () throws(TransportError) in nil }, cancel: {})
          return pending.finish(
            .success(TransportStream(status: response.status, body: body)))
        }
        let connection = EventConnection(
          stream, network: network, link: link, generation: generation, silence: request.timeout)
        pending.finish(.success(TransportStream(status: response.status, body: connection.body)))
      }
    }
  }

  /// Returns the name of a message, for people.
  private static func label(of request: TransportRequest) -> String {
    let path = request.url.utf8.prefix { $0 != UInt8(ascii: "?") }
    let names = path.split(separator: UInt8(ascii: "/")).dropFirst(5)
    switch names.first.map({ String(Substring($0)) }) {
    case "packets": return "push \(request.body?.count ?? 0)B"
    case "changes": return "pull"
    case let name: return request.method == .put ? "connect" : name ?? "look"
    }
  }
}

extension SimulatedNetwork {
  /// Delivers a response to the device, if the network lets it pass.
  func carryBack(
    _ response: HTTPResponse, _ generation: Int, over link: NetworkLink, message: Int,
    label: String, _ finish: @escaping @Sendable (Result<TransportResponse, TransportError>) -> Void
  ) {
    guard case .bytes(var body) = response.body else { return }
    guard isListening(generation) else {
      return finish(.failure(TransportError(.interrupted, "the server went away")))
    }
    // The work is done, and the client gets no response.
    if dice.roll(.crash, at: "server") {
      onCrash("server")
      return finish(.failure(TransportError(.interrupted, "the server went away")))
    }
    let answer = message
    trace.record(
      .sent, "server", peer: link.device, message: answer, "\(response.status) to \(label)")
    trace.digest(body)
    if dice.roll(.drop, at: link.device + "/down") || dice.roll(.stall, at: link.device + "/down") {
      return trace.record(.dropped, "server", peer: link.device, message: answer, "answer lost")
    }
    if dice.roll(.corrupt, at: link.device + "/down") {
      trace.record(.corrupted, "server", peer: link.device, message: answer)
      body = Corruption.damage(body, link.choice)
    }
    var delay = link.delay()
    if dice.roll(.slow, at: link.device + "/down") {
      delay += link.longDelay()
      trace.record(.delayed, "server", peer: link.device, message: answer)
    }
    let isReset = dice.roll(.reset, at: link.device + "/down")
    var headers = TransportHeaders()
    for field in response.headers.fields { headers.add(field.name, field.value) }
    let received = TransportResponse(status: response.status, headers: headers, body: body)
    scheduler.after(delay) { [self] in
      guard !link.isCut(.down) else {
        return trace.record(.dropped, "server", peer: link.device, message: answer, "partitioned")
      }
      guard !isReset else {
        trace.record(.dropped, "server", peer: link.device, message: answer, "connection reset")
        return finish(.failure(TransportError(.interrupted, "connection reset")))
      }
      trace.record(.delivered, link.device, peer: "server", message: answer)
      if dice.roll(.crash, at: link.device) { return onCrash(link.device) }
      finish(.success(received))
    }
  }
}

/// One exchange with a waiting task; the first result counts.
// SAFETY: touched on the scheduler's thread only; tasks are cancelled there too.
final class PendingExchange<Value: Sendable>: @unchecked Sendable {
  typealias Outcome = Result<Value, TransportError>

  private let scheduler: Scheduler
  private var outcome: Outcome?
  private var waiter: CheckedContinuation<Outcome, Never>?
  private var timer: TimerNumber?

  init(_ scheduler: Scheduler) { self.scheduler = scheduler }

  func value(
    within limit: Duration, _ start: @escaping () -> Void
  ) async throws(TransportError) -> Value {
    let first = await withTaskCancellationHandler {
      await withCheckedContinuation { (waiter: CheckedContinuation<Outcome, Never>) in
        if let outcome { return waiter.resume(returning: outcome) }
        self.waiter = waiter
        timer = scheduler.after(limit.microseconds) { [self] in
          finish(.failure(TransportError(.timedOut, "no answer in time")))
        }
        start()
      }
    } onCancel: {
      finish(.failure(TransportError(.cancelled, "cancelled")))
    }
    return try first.get()
  }

  func finish(_ result: Outcome) {
    guard outcome == nil else { return }
    outcome = result
    if let timer { scheduler.cancel(timer) }
    waiter?.resume(returning: result)
    waiter = nil
  }
}
