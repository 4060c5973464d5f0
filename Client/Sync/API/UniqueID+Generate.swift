import FerryProtocol

extension UniqueID {
  /// A new UUIDv7 of this moment: what tracked tables use as keys by default.
  public static func generate() -> UniqueID {
    UniqueID(
      timestamp: HybridTimestamp(
        milliseconds: SystemClock.milliseconds(), counter: .random(in: .min ... .max)),
      random: .random(in: .min ... .max))
  }
}
