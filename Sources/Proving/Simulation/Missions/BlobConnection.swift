import FerryConformance
import FerryHTTPServer
import FerryNetworking

/// Content on its way to a device. It comes in parts, and may be cut short, damaged, delayed or
/// broken off between any two of them.
// SAFETY: touched on the scheduler's thread only.
final class BlobConnection: @unchecked Sendable {
  /// Counts the arriving bytes.
  struct Observer {
    let came: (Int) -> Void
    /// It ended too early, or a part of it is wrong.
    let broke: () -> Void
  }

  /// Bytes of a part.
  static let partBytes = 12_000

  private let bytes: [UInt8]
  private let network: SimulatedNetwork
  private let link: NetworkLink
  private let generation: Int
  private let silence: Duration
  private let observer: Observer?
  private let site: FaultDice.Site
  private var position = 0
  private var isOver = false

  init(
    _ bytes: [UInt8], network: SimulatedNetwork, link: NetworkLink, generation: Int,
    silence: Duration, observer: Observer?
  ) {
    (self.bytes, self.network, self.link) = (bytes, network, link)
    (self.generation, self.silence, self.observer) = (generation, silence, observer)
    site = network.dice.site(link.device + "/content")
  }

  var body: TransportBody {
    TransportBody(
      next: { [self] () async throws(TransportError) in try await next() },
      cancel: { [self] in end() })
  }

  private func next() async throws(TransportError) -> [UInt8]? {
    guard !isOver, position < bytes.count else {
      end()
      return nil
    }
    let pending = PendingExchange<[UInt8]?>(network.scheduler)
    do throws(TransportError) {
      let part = try await pending.value(within: silence) { [self] in send(pending) }
      guard let part else {
        end()
        return nil
      }
      position += part.count
      observer?.came(part.count)
      return part
    } catch {
      end()
      throw error
    }
  }

  /// Sends the next part.
  private func send(_ pending: PendingExchange<[UInt8]?>) {
    let (dice, trace) = (network.dice, network.trace)
    if dice.roll(.drop, at: site) || dice.roll(.stall, at: site) {
      return trace.record(.stalled, "server", peer: link.device, "content stops coming")
    }
    var part = Array(bytes[position..<min(position + Self.partBytes, bytes.count)])
    var isCut = false
    if dice.roll(.corrupt, at: site) {
      trace.record(.corrupted, "server", peer: link.device, "a part of content")
      isCut = link.choice(2) == 0
      if !isCut {
        part[link.choice(part.count)] ^= 1
        observer?.broke()
      }
    }
    var delay = link.delay() / 4
    if dice.roll(.slow, at: site) { delay += link.longDelay() }
    let isReset = dice.roll(.reset, at: site)
    network.scheduler.after(delay) { [self] in
      arrive(part, isCut: isCut, isReset: isReset, pending)
    }
  }

  private func arrive(
    _ part: [UInt8], isCut: Bool, isReset: Bool, _ pending: PendingExchange<[UInt8]?>
  ) {
    guard network.isListening(generation), !isReset else {
      network.trace.record(.dropped, "server", peer: link.device, "content breaks off")
      return pending.finish(.failure(TransportError(.interrupted, "connection reset")))
    }
    // No bytes arrive over a cut link, and neither side is notified.
    guard !link.isCut(.down) else { return }
    if network.dice.roll(.crash, at: link.device) { return network.onCrash(link.device) }
    pending.finish(.success(isCut ? nil : part))
  }

  private func end() {
    guard !isOver else { return }
    isOver = true
    if position < bytes.count { observer?.broke() }
  }
}

extension SimulatedNetwork {
  /// Delivers the head of a response with content to the device, if the network lets it pass; the
  /// content follows on request.
  func carryContent(
    _ response: HTTPResponse, _ generation: Int, over link: NetworkLink, message: Int,
    silence: Duration, observer: BlobConnection.Observer?,
    _ finish: @escaping @Sendable (Result<TransportStream, TransportError>) -> Void
  ) {
    guard isListening(generation), let bytes = response.body.wholeBytes else {
      return finish(.failure(TransportError(.interrupted, "the server went away")))
    }
    trace.record(
      .sent, "server", peer: link.device, message: message,
      "\(response.status) with \(bytes.count)B of content")
    trace.digest(bytes)
    if dice.roll(.drop, at: link.device + "/content") {
      return trace.record(.dropped, "server", peer: link.device, message: message, "answer lost")
    }
    var headers = TransportHeaders()
    for field in response.headers.fields { headers.add(field.name, field.value) }
    headers["Content-Length"] = String(bytes.count)
    let connection = BlobConnection(
      bytes, network: self, link: link, generation: generation, silence: silence,
      observer: response.status < 300 ? observer : nil)
    let stream = TransportStream(
      status: response.status, headers: headers, body: connection.body)
    scheduler.after(link.delay()) { [self] in
      guard !link.isCut(.down) else {
        return trace.record(.dropped, "server", peer: link.device, message: message, "partitioned")
      }
      trace.record(.delivered, link.device, peer: "server", message: message)
      finish(.success(stream))
    }
  }
}

extension HTTPResponse.Body {
  /// All of it; `nil` of a stream, and of an unreadable file.
  fileprivate var wholeBytes: [UInt8]? {
    let content: SegmentedContent
    switch self {
    case .bytes(let bytes): return bytes
    case .file(let file): content = SegmentedContent([.file(file)])
    case .segments(let segments): content = segments
    case .stream, .relay: return nil
    }
    var isWhole = true
    let bytes = [UInt8](unsafeUninitializedCapacity: content.count) { buffer, filled in
      filled = content.read(at: 0, into: UnsafeMutableRawBufferPointer(buffer)) ?? 0
      isWhole = filled == content.count
    }
    return isWhole ? bytes : nil
  }
}
