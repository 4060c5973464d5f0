import CCurl
import Synchronization

/// One exchange on its way through the transport's thread.
// SAFETY: the mutable properties are touched only on the transport's thread, by the loop and by
// the callbacks that curl makes from within it; tasks use `abandoned` and the constants.
final class CurlTransfer: @unchecked Sendable {
  /// What the request's timeout limits.
  enum Limit {
    /// The whole exchange.
    case exchange
    /// Each time without a byte moving.
    case silence
  }

  /// What curl does after a callback that takes data.
  static let stop = -1

  let request: TransportRequest
  let address: RequestAddress
  let limit: Limit
  /// Set by whoever cancels, so that a transfer still in the queue is never started.
  let abandoned = Atomic(false)
  private let sink: any TransferSink

  /// The handle while the transfer runs.
  var easy: EasyHandle?
  /// A reason of ours to end the transfer, which curl's code does not tell.
  private(set) var refusal: TransportError?
  /// Whether a connection was ready for the request.
  private(set) var isConnected = false
  /// Whether the transfer rests until its sink has room.
  var isPaused = false
  /// Whether a byte arrived since the loop looked.
  private(set) var hasMoved = false
  private var movedLast = ContinuousClock.now
  private var uploaded = 0
  private var isSecure: Bool
  private var head: ResponseHeadParser

  init(
    _ request: TransportRequest, _ address: RequestAddress, sink: any TransferSink, limit: Limit
  ) {
    self.request = request
    self.address = address
    self.sink = sink
    self.limit = limit
    isSecure = address.isSecure
    head = ResponseHeadParser(followsRedirects: Self.followsRedirects(request.method))
  }

  /// Whether redirects of a method are followed: curl would repeat others without their body.
  static func followsRedirects(_ method: TransportMethod) -> Bool {
    switch method {
    case .get, .head, .post: true
    case .put, .patch, .delete: false
    }
  }

  /// The error that a cancelled caller gets.
  var cancellation: TransportError {
    TransportError(.cancelled, "the request to \(address.endpoint) was cancelled")
  }

  /// Tells the sink that the transfer is over.
  func finish(_ failure: TransportError?) { sink.finish(failure) }
}

// What curl's callbacks bring.
extension CurlTransfer {
  /// A connection is ready for the next request of the exchange; answers whether to send it.
  func connectionIsReady() -> Bool {
    isConnected = true
    hasMoved = true
    guard !abandoned.load(ordering: .relaxed) else { return false }
    guard let url = easy?.effectiveAddress, let next = try? RequestAddress(url) else { return true }
    if isSecure && !next.isSecure {
      refusal = TransportError(
        .secureConnectionFailed,
        "\(address.endpoint) redirects to the unencrypted \(next.endpoint): not followed")
      return false
    }
    isSecure = next.isSecure
    return true
  }

  /// Takes one line of a head.
  func receive(headLine: UnsafeRawBufferPointer) {
    hasMoved = true
    if let head = head.feed(headLine) { sink.receive(head) }
  }

  /// Takes a part of the body; answers with the number of bytes taken, or what else to do.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    hasMoved = true
    guard !abandoned.load(ordering: .relaxed) else { return Self.stop }
    if bytes.isEmpty || head.isPassing { return bytes.count }
    switch sink.receive(bytes) {
    case .taken:
      return bytes.count
    case .full:
      isPaused = true
      return Int(CURL_WRITEFUNC_PAUSE)
    case .refused(let failure):
      refusal = TransportError(failure.kind, "\(address.endpoint): \(failure.message)")
      return Self.stop
    }
  }
}

// Silence.
extension CurlTransfer {
  /// How long the transfer may stay silent from `now` on; nil when nothing limits it.
  func patience(at now: ContinuousClock.Instant) -> Duration? {
    guard limit == .silence, !isPaused else {
      hasMoved = true
      return nil
    }
    if let sent = easy?.bytesSent, sent != uploaded {
      uploaded = sent
      hasMoved = true
    }
    if hasMoved {
      hasMoved = false
      movedLast = now
    }
    return request.timeout - movedLast.duration(to: now)
  }

  /// The error for a silence over the limit.
  var silenceFailure: TransportError {
    isConnected
      ? TransportError(.timedOut, "\(address.endpoint) was silent for \(request.timeout)")
      : TransportError(.offline, "no connection to \(address.endpoint) in \(request.timeout)")
  }
}
