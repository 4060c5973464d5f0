/// The history hash of a space (SPEC.md §18). It covers the operations, their order, and the stamps
/// and bases that decided about them.
///
/// Two histories that differ before a place have different hashes there, except by a chance of
/// 2⁻⁶⁴. The hash protects against faults. It does not protect against an attacker who searches for
/// operations with a chosen hash.
package enum HistoryHash {
  /// The hash of a history without operations. If a space's operations are older than history
  /// hashes, the hash begins with this, too.
  package static let empty: UInt64 = 0

  /// Returns the history hash after one more operation.
  ///
  /// There are four words: both halves of the identifier, the stamp and the base. For each, the
  /// hash is advanced by the golden ratio and mixed (SplitMix64: Steele, Lea and Flood, 2014). For
  /// a given operation this is a bijection: different hashes still differ after it.
  ///
  /// - Parameters:
  ///   - time: The time of the operation on entry into the space, clamped.
  ///   - base: The newest sequence that the author had seen.
  @inline(__always)
  package static func appending(
    _ operation: OperationID, at time: HybridTimestamp, base: SequenceNumber, to hash: UInt64
  ) -> UInt64 {
    let identified = mix(mix(hash, operation.value.high), operation.value.low)
    return mix(mix(identified, time.rawValue), UInt64(bitPattern: base))
  }

  @inline(__always)
  private static func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
    var mixed = (hash &+ 0x9E37_79B9_7F4A_7C15) ^ word
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  /// Returns the form on the wire: sixteen hexadecimal digits.
  package static func text(_ hash: UInt64) -> String {
    HybridTimestamp(rawValue: hash).description
  }

  /// Parses sixteen hexadecimal digits; `nil` when it is anything else.
  package static func parse(_ text: some StringProtocol) -> UInt64? { Epoch(text)?.value }
}
