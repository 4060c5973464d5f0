/// The running print of a space's history: one number that tells which operations are in it and
/// in which order. Histories that differ anywhere before a place have different prints there, but
/// for a chance of 2⁻⁶⁴; it is a defence against faults, not against somebody who looks for
/// operations with a print that he wants.
package enum HistoryPrint {
  /// Of a history without operations; also where a space's print begins whose operations are older
  /// than prints.
  package static let empty: UInt64 = 0

  /// The print after one more operation: for each half of its identifier the print is moved on by
  /// the golden ratio and mixed (SplitMix64: Steele, Lea and Flood, 2014). Under one and the same
  /// operation that is a bijection: prints that differ still differ after it.
  @inline(__always)
  package static func appending(_ operation: OperationID, to print: UInt64) -> UInt64 {
    mix(mix(print, operation.value.high), operation.value.low)
  }

  @inline(__always)
  private static func mix(_ print: UInt64, _ half: UInt64) -> UInt64 {
    var mixed = (print &+ 0x9E37_79B9_7F4A_7C15) ^ half
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  /// Sixteen hexadecimal digits, as it travels.
  package static func text(_ print: UInt64) -> String {
    HybridTimestamp(rawValue: print).description
  }

  /// Parses sixteen hexadecimal digits; `nil` when it is anything else.
  package static func parse(_ text: some StringProtocol) -> UInt64? { Epoch(text)?.value }
}
