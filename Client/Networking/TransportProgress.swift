/// How far an exchange is, in bytes of bodies as they travel.
public struct TransportProgress: Sendable, Equatable {
  /// Bytes of the request's body that were sent.
  public var sent: Int
  /// Of how many; nil when nothing is to be sent.
  public var sentTotal: Int?
  /// Bytes of the response's body that were received, before decompression.
  public var received: Int
  /// Of how many; nil when the server does not say.
  public var receivedTotal: Int?

  /// A state; by default that before anything moves.
  public init(
    sent: Int = 0, sentTotal: Int? = nil, received: Int = 0, receivedTotal: Int? = nil
  ) {
    self.sent = sent
    self.sentTotal = sentTotal
    self.received = received
    self.receivedTotal = receivedTotal
  }
}

/// Hears of progress, each time that something moved; called on the transport's thread, so it has
/// to return at once. A new attempt, and a redirect, begin at zero again.
public typealias TransportProgressHandler = @Sendable (TransportProgress) -> Void
