/// The bandwidth of all transfers of a transport together.
public struct BandwidthLimits: Sendable, Equatable {
  /// Bytes of bodies received in a second, compressed as they travel; `nil` for no limit.
  public var receiving: Int?
  /// Bytes of bodies sent in a second; `nil` for no limit.
  public var sending: Int?

  /// Creates limits; zero and less mean one byte a second.
  public init(receiving: Int? = nil, sending: Int? = nil) {
    self.receiving = receiving
    self.sending = sending
  }
}
