#if SystemLibraries && !canImport(Darwin)

  /// Pauses transfers over the common limits, and resumes them in turn.
  ///
  /// A class, because all transfers of a loop share it. It never leaves the transport's thread.
  final class BandwidthGate {
    /// The largest part sent at once under a limit, in bytes.
    private static let partMaxLimited = 16 << 10

    private var limits: BandwidthLimits
    private var receiving: BandwidthBucket?
    private var sending: BandwidthBucket?
    /// Paused transfers, in the order of their resumption.
    private var waitingToReceive: [CurlTransfer] = []
    private var waitingToSend: [CurlTransfer] = []

    init(_ limits: BandwidthLimits) {
      self.limits = limits
      fill()
    }

    /// True if bodies are to be read part by part.
    var limitsSending: Bool { sending != nil }

    /// The number of bytes to send at once; `nil` for as many as there is room for.
    var partMax: Int? { sending == nil ? nil : Self.partMaxLimited }

    /// Sets other limits; paused transfers retry.
    func change(_ limits: BandwidthLimits) {
      guard limits != self.limits else { return }
      self.limits = limits
      fill()
    }

    /// Returns true if a transfer may receive bytes; if not, it pauses.
    func mayReceive(_ transfer: CurlTransfer) -> Bool {
      guard receiving != nil else { return true }
      let now = ContinuousClock.now
      if receiving?.wait(at: now) != nil {
        if transfer.pauses.insert(.receiving).inserted { waitingToReceive.append(transfer) }
        return false
      }
      receiving?.consume(transfer.countReceived(), at: now)
      return true
    }

    /// Returns true if a transfer may send the next part; if not, it pauses.
    func maySend(_ transfer: CurlTransfer) -> Bool {
      guard sending?.wait(at: .now) != nil else { return true }
      if transfer.pauses.insert(.sending).inserted { waitingToSend.append(transfer) }
      return false
    }

    /// Records `count` sent bytes.
    func recordSent(_ count: Int) { sending?.consume(count, at: .now) }

    /// Resumes transfers with credit. Returns the time until the next one; `nil` if none is paused.
    func release() -> Duration? {
      if waitingToReceive.isEmpty && waitingToSend.isEmpty { return nil }
      let receive = release(\.waitingToReceive, .receiving) { receiving?.wait(at: .now) }
      let send = release(\.waitingToSend, .sending) { sending?.wait(at: .now) }
      return [receive, send].compactMap { $0 }.min()
    }

    /// Resumes transfers of one list. It keeps no copy of the list, because resuming calls
    /// `mayReceive` and `maySend`.
    private func release(
      _ waiting: ReferenceWritableKeyPath<BandwidthGate, [CurlTransfer]>,
      _ reason: CurlTransfer.Pauses, _ wait: () -> Duration?
    ) -> Duration? {
      // A resumed transfer may pause again: then it is behind the others.
      for _ in self[keyPath: waiting] {
        if let patience = wait() { return patience }
        self[keyPath: waiting].removeFirst().resume(reason)
      }
      return self[keyPath: waiting].isEmpty ? nil : wait() ?? .zero
    }

    private func fill() {
      let now = ContinuousClock.now
      receiving = limits.receiving.map { BandwidthBucket(bytesPerSecond: $0, now: now) }
      sending = limits.sending.map { BandwidthBucket(bytesPerSecond: $0, now: now) }
    }
  }
#endif
