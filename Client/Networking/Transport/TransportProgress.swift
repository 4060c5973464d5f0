/// The progress of an exchange, in bytes of bodies, compressed as they travel.
public struct TransportProgress: Sendable, Equatable {
  /// The sent bytes of the request's body.
  public var sent: Int
  /// The length of the request's body; `nil` if there is none.
  public var sentTotal: Int?
  /// The received bytes of the response's body, before decompression.
  public var received: Int
  /// The length of the response's body; `nil` if the server does not announce it.
  public var receivedTotal: Int?

  /// Creates a state; by default the one before the first byte.
  public init(
    sent: Int = 0, sentTotal: Int? = nil, received: Int = 0, receivedTotal: Int? = nil
  ) {
    self.sent = sent
    self.sentTotal = sentTotal
    self.received = received
    self.receivedTotal = receivedTotal
  }
}

/// Receives each change of the progress, on the transport's thread, so it must return at once. A
/// new attempt, and a redirect, begin at zero again.
public typealias TransportProgressHandler = @Sendable (TransportProgress) -> Void
