/// How much a cache keeps, and for how long.
public struct CacheLimits: Sendable, Equatable {
  /// Bytes of bodies in memory.
  public var memoryBytes: Int
  /// Bytes on disk, fields included; what was used longest ago goes first.
  public var diskBytes: Int
  /// The largest body that is kept, in bytes.
  public var bodyBytesMax: Int
  /// How long after its arrival or last confirmation an answer is kept, fresh or stale.
  public var age: Duration

  /// Limits; the defaults suit requests.
  public init(
    memoryBytes: Int = 8 << 20, diskBytes: Int = 64 << 20, bodyBytesMax: Int = 8 << 20,
    age: Duration = .seconds(30 * 24 * 3600)
  ) {
    self.memoryBytes = memoryBytes
    self.diskBytes = diskBytes
    self.bodyBytesMax = bodyBytesMax
    self.age = age
  }

  /// For images: 32 MiB in memory, 256 MiB on disk, 32 MiB each, 30 days.
  public static let images = CacheLimits(
    memoryBytes: 32 << 20, diskBytes: 256 << 20, bodyBytesMax: 32 << 20)
}
