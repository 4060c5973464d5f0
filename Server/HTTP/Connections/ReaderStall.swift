/// The progress of a client during an answer with reserved memory; pure.
///
/// A client may be slow for as long as nobody needs the memory. While it is scarce, an answer has
/// to move on, or the connection is closed, and the client asks again.
struct ReaderStall: Equatable {
  /// The time in which a client reads ``bytes`` at least.
  static let period = Duration.seconds(5)
  static let bytes: UInt64 = 64 << 10

  private var acknowledged: UInt64
  private var since: Duration

  /// - Parameter acknowledged: Bytes acknowledged by the client so far.
  init(_ acknowledged: UInt64, at now: Duration) {
    (self.acknowledged, since) = (acknowledged, now)
  }

  /// Returns `true` if the client has read too little since the last progress.
  mutating func isStalled(_ acknowledged: UInt64, at now: Duration) -> Bool {
    if acknowledged >= self.acknowledged + Self.bytes {
      (self.acknowledged, since) = (acknowledged, now)
    }
    return now - since > Self.period
  }
}
