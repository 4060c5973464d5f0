import FerryHTTPServer
import FerryNetworking

/// A stream of events on its way to a device. It has the connection with the suspended server side,
/// and the body for the device.
// SAFETY: touched on the scheduler's thread only.
final class EventConnection: HTTPStream.Outlet, @unchecked Sendable {
  private let stream: HTTPStream
  private let network: SimulatedNetwork
  private let link: NetworkLink
  private let generation: Int
  private let silence: Duration
  private var waiting: [[UInt8]] = []
  private var reader: PendingExchange<[UInt8]?>?
  /// The end for the device.
  private var end: Result<[UInt8]?, TransportError>?
  /// The connection stays and no bytes come any more.
  private var isHalfOpen = false
  private var isLeft = false
  /// No later event overtakes an earlier one.
  private var lastArrival: Int64 = 0

  init(
    _ stream: HTTPStream, network: SimulatedNetwork, link: NetworkLink, generation: Int,
    silence: Duration
  ) {
    (self.stream, self.network, self.link) = (stream, network, link)
    (self.generation, self.silence) = (generation, silence)
    stream.attach(self)
    pump()
  }

  /// The body for the device to read.
  var body: TransportBody {
    TransportBody(
      next: { [self] () async throws(TransportError) in try await next() },
      cancel: { [self] in leave() })
  }

  private func next() async throws(TransportError) -> [UInt8]? {
    if !waiting.isEmpty { return waiting.removeFirst() }
    if let end { return try end.get() }
    let reader = PendingExchange<[UInt8]?>(network.scheduler)
    self.reader = reader
    return try await reader.value(within: silence) {}
  }

  private func leave() {
    guard !isLeft else { return }
    isLeft = true
    network.scheduler.after(0) { [self] in stream.connectionEnded() }
  }

  // MARK: The server's side

  func suspend() -> Bool { network.isListening(generation) && !isLeft }

  func resume() { network.scheduler.after(0) { [self] in pump() } }

  func disconnect() { network.scheduler.after(0) { [self] in finish(.success(nil)) } }

  func isPeerGone() -> Bool { isLeft }

  /// Sends the bytes written by the server.
  private func pump() {
    var buffer = [UInt8](repeating: 0, count: 4_096)
    while true {
      switch buffer.withUnsafeMutableBytes({ stream.read(into: $0) }) {
      case .bytes(let count): carry(Array(buffer.prefix(count)))
      case .suspended: return
      case .end, .failure: return finish(.success(nil))
      }
    }
  }

  private func carry(_ bytes: [UInt8]) {
    let (network, site) = (network, link.device + "/events")
    if network.dice.roll(.drop, at: site) || network.dice.roll(.stall, at: site) {
      isHalfOpen = true
      network.trace.record(.stalled, "server", peer: link.device, "the event stream falls silent")
    }
    if network.dice.roll(.reset, at: site) {
      finish(.failure(TransportError(.interrupted, "connection reset")))
    }
    let arrival = max(network.scheduler.now + link.delay(), lastArrival)
    lastArrival = arrival
    network.scheduler.after(arrival - network.scheduler.now) { [self] in
      // A connection over a cut link never recovers, as after a change of networks.
      if link.isCut(.down) { isHalfOpen = true }
      guard !isHalfOpen, end == nil else { return }
      guard let reader else { return waiting.append(bytes) }
      self.reader = nil
      reader.finish(.success(bytes))
    }
  }

  private func finish(_ result: Result<[UInt8]?, TransportError>) {
    guard end == nil, !isHalfOpen else { return }
    end = result
    reader?.finish(result)
    reader = nil
    leave()
  }
}
