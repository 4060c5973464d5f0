/// The size and age limits of a cache.
public struct CacheLimits: Sendable, Equatable {
  /// Bytes of bodies in memory.
  public var memoryBytes: Int
  /// Bytes on disk, fields included; the least recently used answers are removed first.
  public var diskBytes: Int
  /// The largest kept body, in bytes.
  public var bodyBytesMax: Int
  /// How long an answer is kept after its arrival or last confirmation, fresh or stale.
  public var age: Duration

  /// Creates limits; the defaults suit requests.
  public init(
    memoryBytes: Int = 8 << 20, diskBytes: Int = 64 << 20, bodyBytesMax: Int = 8 << 20,
    age: Duration = .seconds(30 * 24 * 3600)
  ) {
    self.memoryBytes = memoryBytes
    self.diskBytes = diskBytes
    self.bodyBytesMax = bodyBytesMax
    self.age = age
  }

  /// Limits for images: 32 MiB in memory, 256 MiB on disk, 32 MiB each, 30 days.
  public static let images = CacheLimits(
    memoryBytes: 32 << 20, diskBytes: 256 << 20, bodyBytesMax: 32 << 20)
}
