import FerryProtocol
import Synchronization

extension UniqueID {
  /// Returns a new UUIDv7 of the current time: the default key of tracked tables.
  ///
  /// It is greater than all earlier ones of this process, so keys sort by the order of creation
  /// also within a millisecond (RFC 9562 §6.2).
  ///
  /// ```swift
  /// try database.execute("INSERT INTO notes VALUES (?, ?)", [.text("\(UniqueID.generate())"), "hello"])
  /// ```
  public static func generate() -> UniqueID {
    // The upper half of the counters is left for the next identifiers in the same millisecond.
    let now = HybridTimestamp(
      milliseconds: SystemClock.milliseconds(), counter: .random(in: 0...0x7FFF))
    let time = newest.withLock { newest in
      newest = max(now, HybridTimestamp(rawValue: newest.rawValue &+ 1))
      return newest
    }
    return UniqueID(timestamp: time, random: .random(in: .min ... .max))
  }

  /// The time of the newest identifier of this process.
  private static let newest = Mutex(HybridTimestamp.zero)
}
