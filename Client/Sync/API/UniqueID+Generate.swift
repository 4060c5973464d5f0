import FerryProtocol

extension UniqueID {
  /// Returns a new UUIDv7 of the current time: the default key of tracked tables.
  public static func generate() -> UniqueID {
    UniqueID(
      timestamp: HybridTimestamp(
        milliseconds: SystemClock.milliseconds(), counter: .random(in: .min ... .max)),
      random: .random(in: .min ... .max))
  }
}
