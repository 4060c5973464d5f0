#if SystemLibraries && !canImport(Darwin)
  import CFerryCurl
  import Synchronization

  /// One exchange on the transport's thread.
  // SAFETY: the mutable properties are touched only on the transport's thread, by the loop and by
  // curl's callbacks from within it; tasks use `abandoned` and the constants.
  final class CurlTransfer: @unchecked Sendable {
    /// The result of a callback to make curl stop.
    static let stop = -1

    let request: TransportRequest
    let address: RequestAddress
    let limit: TransferLimit
    /// Set on cancellation, so a transfer still in the queue never starts.
    let abandoned = Atomic(false)
    private let sink: any TransferSink
    private let progress: TransportProgressHandler?

    /// The handle while the transfer runs.
    var easy: EasyHandle?
    /// Ferry's own reason to end the transfer; curl's code does not have it.
    private(set) var refusal: TransportError?
    /// True if a connection was ready for the request.
    private(set) var isConnected = false
    /// The body, if it is read part by part.
    var source: BodySource?
    /// The proxies that every request may connect to.
    var proxies: ProxyAddresses?
    /// The common bandwidth limit of all transfers.
    var gate: BandwidthGate?
    /// The reasons why the transfer is paused.
    var pauses: Pauses = []
    private var progressLast = TransportProgress()
    /// True if a byte arrived since the loop's last check.
    private(set) var hasMoved = false
    private var movedLast = ContinuousClock.now
    private var uploaded = 0
    private var received = 0
    /// The last address of the request.
    private var lastAddress: RequestAddress
    private var head: ResponseHeadParser
    /// True if the body has begun.
    private var hasHead = false
    private var pace: RequestPace?
    private var isTooSlow = false

    init(
      _ request: TransportRequest, _ address: RequestAddress, sink: any TransferSink,
      limit: TransferLimit,
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

    /// Returns true if redirects of a method are followed: curl would repeat others without their
    /// body.
    static func followsRedirects(_ method: TransportMethod) -> Bool {
      switch method {
      case .get, .head, .post: true
      case .put, .patch, .delete: false
      }
    }

    /// The error for a cancelled caller.
    var cancellation: TransportError {
      TransportError(.cancelled, "the request to \(address.endpoint) was cancelled")
    }

    /// Notifies the sink of the transfer's end.
    func finish(_ failure: TransportError?) { sink.finish(failure) }
  }

  // Curl's callbacks.
  extension CurlTransfer {
    /// Returns true if the exchange may connect to an address for the next request.
    func mayConnect(to address: NetworkAddress?, port: UInt16) -> Bool {
      let rule = request.destinations
      if rule == .any { return true }
      guard let next = easy?.effectiveAddress.flatMap({ try? RequestAddress($0) }) else {
        return false
      }
      if let refusal = rule.refusal(of: next) {
        self.refusal = refusal
        return false
      }
      guard let refusal = rule.refusal(of: next, at: address) else { return true }
      if let address, proxies?.contain(address, port: port) == true { return true }
      self.refusal = refusal
      return false
    }

    /// Records that a connection is ready for the next request of the exchange. Returns true to send
    /// the request. An earlier request may have opened the connection.
    func connectionIsReady(to remote: NetworkAddress?, port: UInt16) -> Bool {
      isConnected = true
      hasMoved = true
      guard !abandoned.load(ordering: .relaxed) else { return false }
      guard mayConnect(to: remote, port: port) else { return false }
      guard let easy, let url = easy.effectiveAddress, let next = try? RequestAddress(url) else {
        refusal = TransportError(
          .redirectRefused, "\(address.endpoint) redirects to an invalid address")
        return false
      }
      let sendsBody = request.hasBody && easy.effectiveMethod == request.method.rawValue
      let check = RedirectCheck(request: request, first: address)
      if let refusal = check.refusal(of: next, after: lastAddress, sendsBody: sendsBody) {
        self.refusal = refusal
        return false
      }
      lastAddress = next
      return true
    }

    /// Receives one line of a head. Returns true to continue.
    ///
    /// Lines of a head are no movement: a head sent byte by byte must not delay the request for ever.
    func receive(headLine: UnsafeRawBufferPointer) -> Bool {
      if let head = head.feed(headLine) {
        (hasMoved, hasHead) = (true, true)
        sink.receive(head)
      }
      guard let fault = head.fault else { return true }
      refusal = TransportError(.responseTooLarge, "\(address.endpoint): \(fault)")
      return false
    }

    /// Receives a part of the body. Returns the number of accepted bytes, or a code for curl.
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

    /// Writes the next part of the body into `buffer`. Returns the part's size, or a code for curl.
    func send(into buffer: UnsafeMutableRawBufferPointer) -> Int {
      hasMoved = true
      guard !abandoned.load(ordering: .relaxed), let source else { return Int(CURL_READFUNC_ABORT) }
      if let gate, !source.isAtEnd, !gate.maySend(self) { return Int(CURL_READFUNC_PAUSE) }
      do {
        let room = gate?.partMax ?? buffer.count
        let count = try source.read(into: .init(rebasing: buffer.prefix(room)))
        gate?.recordSent(count)
        return count
      } catch {
        refusal = error
        return Int(CURL_READFUNC_ABORT)
      }
    }

    /// Returns the bytes received since the last call, compressed as they travel.
    func countReceived() -> Int {
      let total = easy?.bytesReceived ?? 0
      defer { received = total }
      // A redirect restarts the count.
      return total >= received ? total - received : total
    }

    /// Reports the progress of the transfer to the observer.
    func report(_ state: TransportProgress) {
      guard let progress, state != progressLast, !abandoned.load(ordering: .relaxed) else { return }
      progressLast = state
      progress(state)
    }

    /// True if the transfer has an observer of the progress.
    var isObserved: Bool { progress != nil }
  }

  // Pauses.
  extension CurlTransfer {
    /// The reasons why a transfer is paused; it resumes when none is left.
    struct Pauses: OptionSet {
      let rawValue: Int
      /// The sink has no room.
      static let sink = Pauses(rawValue: 1)
      /// All transfers together have reached the limit for receiving.
      static let receiving = Pauses(rawValue: 2)
      /// All transfers together have reached the limit for sending.
      static let sending = Pauses(rawValue: 4)
    }

    /// Removes one reason to pause.
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
    /// Returns how long the transfer may stay silent from `now` on; `nil` without a limit.
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

    /// The error for a silence over the limit, or for a too slow body.
    var silenceFailure: TransportError {
      if isTooSlow, let rate = request.minimumRate {
        return TransportError(
          .timedOut,
          "\(address.endpoint) sent less than \(rate) bytes a second for \(request.timeout)")
      }
      return isConnected
        ? TransportError(.timedOut, "\(address.endpoint) was silent for \(request.timeout)")
        : TransportError(.offline, "no connection to \(address.endpoint) within \(request.timeout)")
    }
  }
#endif
