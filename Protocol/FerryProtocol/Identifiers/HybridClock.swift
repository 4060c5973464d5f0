/// A hybrid logical clock's reading: 48 bits of milliseconds since 1970, 16 bits of counter.
///
/// Equal readings of two devices are ordered by device id. On the wire: 16 hexadecimal digits.
/// Source: Kulkarni et al., "Logical Physical Clocks", 2014.
public struct HybridTimestamp: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// Milliseconds in the upper 48 bits, the counter in the lower 16.
  public let rawValue: UInt64

  /// Creates a reading from the packed form.
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Creates a reading at `milliseconds` since 1970; out of range values are clamped to 48 bits.
  public init(milliseconds: Int64, counter: UInt16 = 0) {
    let bounded = UInt64(clamping: max(0, milliseconds))
    rawValue = min(bounded, 0xFFFF_FFFF_FFFF) << 16 | UInt64(counter)
  }

  /// Before every other reading.
  public static let zero = HybridTimestamp(rawValue: 0)

  /// The latest reading of others that moves a device's clock, in the year 6429. After later ones,
  /// no room would be left for the device's own readings.
  package static let seenMax = HybridTimestamp(milliseconds: Limits.wallTimeMax / 2)

  /// Milliseconds since 1970.
  public var milliseconds: Int64 { Int64(rawValue >> 16) }

  /// The next reading, carrying into the milliseconds when the counter is full.
  public var next: HybridTimestamp {
    HybridTimestamp(rawValue: rawValue == .max ? rawValue : rawValue + 1)
  }

  /// Sixteen hexadecimal digits.
  public var description: String {
    var text: [UInt8] = []
    appendText(to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  package func appendText(to text: inout [UInt8]) {
    withUnsafeTemporaryAllocation(byteCount: 16, alignment: 8) { room in
      guard var end = room.baseAddress else { return }
      end.append(hex: rawValue)
      text.append(contentsOf: UnsafeRawBufferPointer(room))
    }
  }

  package init?(utf8 bytes: UnsafeBufferPointer<UInt8>) {
    guard bytes.count == 16 else { return nil }
    var value: UInt64 = 0
    for byte in bytes {
      guard let digit = hexValue(byte) else { return nil }
      value = value << 4 | UInt64(digit)
    }
    rawValue = value
  }

  public static func < (left: HybridTimestamp, right: HybridTimestamp) -> Bool {
    left.rawValue < right.rawValue
  }
}

/// A device's clock: never goes back, even if the wall clock does, and runs ahead of every
/// timestamp the device has seen.
public struct HybridClock: Sendable, Equatable {
  /// The newest reading given or seen.
  public private(set) var last: HybridTimestamp

  /// Creates a clock that continues after `last`.
  public init(last: HybridTimestamp = .zero) { self.last = last }

  /// Returns a reading later than all before it. `wall` is milliseconds since 1970, already
  /// corrected by the device's offset from the server.
  public mutating func tick(wall: Int64) -> HybridTimestamp {
    last = max(HybridTimestamp(milliseconds: wall), last.next)
    return last
  }

  /// Moves the clock past a timestamp from elsewhere.
  public mutating func observe(_ seen: HybridTimestamp) { last = max(last, seen) }
}
