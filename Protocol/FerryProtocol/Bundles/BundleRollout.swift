/// The share of a space's devices that take a version, in hundredths of a percent.
public struct BundleShare: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// All devices.
  public static let all = BundleShare(checked: 10_000)
  /// No device.
  public static let none = BundleShare(checked: 0)

  /// From 0 to 10,000.
  public let hundredths: Int

  /// `nil` unless the number is from 0 to 10,000.
  public init?(hundredths: Int64) {
    guard 0...10_000 ~= hundredths else { return nil }
    self.init(checked: Int(hundredths))
  }

  private init(checked hundredths: Int) { self.hundredths = hundredths }

  /// Reads a percentage with at most two decimals, such as `10` or `0.25`; `nil` for anything else.
  public init?(percent text: String) {
    let parts = text.utf8.split(separator: 0x2E, omittingEmptySubsequences: false).map(Array.init)
    let digits = parts.count == 2 ? parts[1] : []
    guard (1...2).contains(parts.count), (1...3).contains(parts[0].count),
      parts.count == 1 || (1...2).contains(digits.count),
      (parts[0] + digits).allSatisfy({ 0x30...0x39 ~= $0 })
    else { return nil }
    func number(_ digits: some Sequence<UInt8>) -> Int64 {
      digits.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }
    self.init(
      hundredths: number(parts[0]) * 100 + number(digits) * (digits.count == 1 ? 10 : 1))
  }

  /// The percentage, such as `12.5%`.
  public var description: String {
    let (whole, rest) = hundredths.quotientAndRemainder(dividingBy: 100)
    if rest == 0 { return "\(whole)%" }
    return rest % 10 == 0 ? "\(whole).\(rest / 10)%" : "\(whole).\(rest < 10 ? "0" : "")\(rest)%"
  }

  public static func < (left: Self, right: Self) -> Bool { left.hundredths < right.hundredths }
}

/// The decision about the devices for a version with a share (SPEC.md §31); pure.
///
/// Each device has a fixed place for each version. A larger share contains the devices of a smaller
/// one.
package enum BundleRollout {
  /// Places of devices.
  package static let places = 10_000

  /// Returns whether a device takes a version.
  package static func includes(
    _ device: DeviceID, in share: BundleShare, of bundle: BundleID
  ) -> Bool {
    place(of: device, for: bundle) < share.hundredths
  }

  /// Returns the device's place for a version, from 0 to 9,999.
  package static func place(of device: DeviceID, for bundle: BundleID) -> Int {
    var hash = mix(mix(0, device.value.high), device.value.low)
    // FNV-1a (Fowler, Noll and Vo) makes one word of the mission's name.
    var word: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in bundle.mission.value.utf8 { word = (word ^ UInt64(byte)) &* 0x100_0000_01B3 }
    hash = mix(hash, word)
    return Int(hash % UInt64(places))
  }

  /// SplitMix64 (Steele, Lea and Flood, 2014), as in history hashes.
  private static func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
    var mixed = (hash &+ 0x9E37_79B9_7F4A_7C15) ^ word
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }
}
