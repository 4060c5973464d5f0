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
  private let progress: TransportProgressHandler?

  /// The handle while the transfer runs.
  var easy: EasyHandle?
  /// A reason of ours to end the transfer, which curl's code does not tell.
  private(set) var refusal: TransportError?
  /// Whether a connection was ready for the request.
  private(set) var isConnected = false
  /// The body, where it is read part by part.
  var source: BodySource?
  /// What limits all transfers together.
  var gate: BandwidthGate?
  /// Why the transfer rests.
  var pauses: Pauses = []
  private var progressLast = TransportProgress()
  /// Whether a byte arrived since the loop looked.
  private(set) var hasMoved = false
  private var movedLast = ContinuousClock.now
  private var uploaded = 0
  private var received = 0
  /// Where the request went last.
  private var lastAddress: RequestAddress
  private var head: ResponseHeadParser
  /// Whether the body has begun.
  private var hasHead = false
  private var pace: RequestPace?
  private var isTooSlow = false

  init(
    _ request: TransportRequest, _ address: RequestAddress, sink: any TransferSink, limit: Limit,
    progress: TransportProgressHandler? = nil
  ) {
    self.request = request
    self.address = address
    self.sink = sink
    self.limit = limit
    self.progress = progress
    lastAddress = address
    pace = request.minimumRate.map { RequestPace(rateMin: $0, window: request.timeout) }
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
    guard let easy, let url = easy.effectiveAddress, let next = try? RequestAddress(url) else {
      refusal = TransportError(
        .redirectRefused, "\(address.endpoint) redirects to what is no address")
      return false
    }
    let hasBody = request.body != nil || request.file != nil
    let sendsBody = hasBody && easy.effectiveMethod == request.method.rawValue
    let check = RedirectCheck(request: request, first: address)
    if let refusal = check.refusal(of: next, after: lastAddress, sendsBody: sendsBody) {
      self.refusal = refusal
      return false
    }
    lastAddress = next
    return true
  }

  /// Takes one line of a head; answers whether to go on.
  ///
  /// Lines of a head are no movement: a head that comes byte by byte must not hold the request.
  func receive(headLine: UnsafeRawBufferPointer) -> Bool {
    if let head = head.feed(headLine) {
      (hasMoved, hasHead) = (true, true)
      sink.receive(head)
    }
    guard let fault = head.fault else { return true }
    refusal = TransportError(.responseTooLarge, "\(address.endpoint): \(fault)")
    return false
  }

  /// Takes a part of the body; answers with the number of bytes taken, or what else to do.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    hasMoved = true
    guard !abandoned.load(ordering: .relaxed) else { return Self.stop }
    if bytes.isEmpty || head.isPassing { return bytes.count }
    if let gate, !gate.mayReceive(self) { return Int(CURL_WRITEFUNC_PAUSE) }
    switch sink.receive(bytes) {
    case .taken:
      return bytes.count
    case .full:
      pauses.insert(.sink)
      return Int(CURL_WRITEFUNC_PAUSE)
    case .refused(let failure):
      refusal = TransportError(failure.kind, "\(address.endpoint): \(failure.message)")
      return Self.stop
    }
  }

  /// Puts the next part of the body into `buffer`; answers with its size, or what else to do.
  func send(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    hasMoved = true
    guard !abandoned.load(ordering: .relaxed), let source else { return Int(CURL_READFUNC_ABORT) }
    if let gate, !source.isAtEnd, !gate.maySend(self) { return Int(CURL_READFUNC_PAUSE) }
    do {
      let room = gate?.partMax ?? buffer.count
      let count = try source.read(into: .init(rebasing: buffer.prefix(room)))
      gate?.noteSent(count)
      return count
    } catch {
      refusal = error
      return Int(CURL_READFUNC_ABORT)
    }
  }

  /// Counts what was received since the last time, as it came over the wire.
  func countReceived() -> Int {
    let total = easy?.bytesReceived ?? 0
    defer { received = total }
    // A redirect begins to count anew.
    return total >= received ? total - received : total
  }

  /// Tells whoever wants to know how far the transfer is.
  func report(_ state: TransportProgress) {
    guard let progress, state != progressLast, !abandoned.load(ordering: .relaxed) else { return }
    progressLast = state
    progress(state)
  }

  /// Whether somebody wants to know how far the transfer is.
  var isObserved: Bool { progress != nil }
}

// Rest.
extension CurlTransfer {
  /// Why a transfer rests; it goes on when nothing is left.
  struct Pauses: OptionSet {
    let rawValue: Int
    /// Its sink has no room.
    static let sink = Pauses(rawValue: 1)
    /// All transfers together have received as much as they may.
    static let receiving = Pauses(rawValue: 2)
    /// All transfers together have sent as much as they may.
    static let sending = Pauses(rawValue: 4)
  }

  /// Takes one reason to rest away.
  func resume(_ reason: Pauses) {
    guard let easy, pauses.remove(reason) != nil else { return }
    var mask = CURLPAUSE_CONT
    if !pauses.isDisjoint(with: [.sink, .receiving]) { mask |= CURLPAUSE_RECV }
    if pauses.contains(.sending) { mask |= CURLPAUSE_SEND }
    curl_easy_pause(easy.pointer, mask)
  }
}

// Silence.
extension CurlTransfer {
  /// How long the transfer may stay silent from `now` on; nil when nothing limits it.
  func patience(at now: ContinuousClock.Instant) -> Duration? {
    guard limit == .silence, pauses.isEmpty else {
      hasMoved = true
      pace?.rest()
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
    let silence = request.timeout - movedLast.duration(to: now)
    guard hasHead, let left = pace?.patience(received: easy?.bytesReceived ?? 0, at: now) else {
      return silence
    }
    if left <= .zero { isTooSlow = true }
    return min(silence, left)
  }

  /// The error for a silence over the limit, or a body that comes too slowly.
  var silenceFailure: TransportError {
    if isTooSlow, let rate = request.minimumRate {
      return TransportError(
        .timedOut,
        "\(address.endpoint) sent less than \(rate) bytes a second for \(request.timeout)")
    }
    return isConnected
      ? TransportError(.timedOut, "\(address.endpoint) was silent for \(request.timeout)")
      : TransportError(.offline, "no connection to \(address.endpoint) in \(request.timeout)")
  }
}
