/// Lets transfers rest that would exceed the limits together, and lets them go on in turn.
///
/// A class, because all transfers of a loop share it. It never leaves the transport's thread.
final class BandwidthGate {
  /// The largest part that is sent at once under a limit, in bytes.
  private static let partMaxLimited = 16 << 10

  private var limits: BandwidthLimits
  private var receiving: BandwidthBucket?
  private var sending: BandwidthBucket?
  /// Those that rest, in the order in which they go on.
  private var waitingToReceive: [CurlTransfer] = []
  private var waitingToSend: [CurlTransfer] = []

  init(_ limits: BandwidthLimits) {
    self.limits = limits
    fill()
  }

  /// Whether bodies are to be read part by part.
  var limitsSending: Bool { sending != nil }

  /// How many bytes to send at once; nil for as many as there is room for.
  var partMax: Int? { sending == nil ? nil : Self.partMaxLimited }

  /// Sets other limits; whoever rests tries again.
  func change(_ limits: BandwidthLimits) {
    guard limits != self.limits else { return }
    self.limits = limits
    fill()
  }

  /// Whether a transfer may take what has arrived; if not, it rests.
  func mayReceive(_ transfer: CurlTransfer) -> Bool {
    guard receiving != nil else { return true }
    let now = ContinuousClock.now
    if receiving?.wait(at: now) != nil {
      if transfer.pauses.insert(.receiving).inserted { waitingToReceive.append(transfer) }
      return false
    }
    receiving?.take(transfer.countReceived(), at: now)
    return true
  }

  /// Whether a transfer may send its next part; if not, it rests.
  func maySend(_ transfer: CurlTransfer) -> Bool {
    guard sending?.wait(at: .now) != nil else { return true }
    if transfer.pauses.insert(.sending).inserted { waitingToSend.append(transfer) }
    return false
  }

  /// A transfer sends `count` bytes.
  func noteSent(_ count: Int) { sending?.take(count, at: .now) }

  /// Lets go on who may; answers how long until the next may, nil when nobody rests.
  func release() -> Duration? {
    if waitingToReceive.isEmpty && waitingToSend.isEmpty { return nil }
    let receive = release(\.waitingToReceive, .receiving) { receiving?.wait(at: .now) }
    let send = release(\.waitingToSend, .sending) { sending?.wait(at: .now) }
    return [receive, send].compactMap { $0 }.min()
  }

  /// Going on calls back into `mayReceive` and `maySend`, so no list is held meanwhile.
  private func release(
    _ waiting: ReferenceWritableKeyPath<BandwidthGate, [CurlTransfer]>,
    _ reason: CurlTransfer.Pauses, _ wait: () -> Duration?
  ) -> Duration? {
    // Going on may end in the same rest again: those are behind the others then.
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
