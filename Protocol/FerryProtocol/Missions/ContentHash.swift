/// The SHA-256 of a file or of a part of one (FIPS 180-4), which names content.
public struct ContentHash: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// Bytes of a hash.
  public static let byteCount = 32

  // Four words rather than an array, since manifests hold thousands.
  private let words: (UInt64, UInt64, UInt64, UInt64)

  private init() { words = (0, 0, 0, 0) }

  /// Stands for a hash that is read next.
  package static let blank = ContentHash()

  /// `nil` unless there are 32 bytes.
  public init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    var iterator = bytes.makeIterator()
    func word() -> UInt64 {
      var word: UInt64 = 0
      for _ in 0..<8 { word = word << 8 | UInt64(iterator.next() ?? 0) }
      return word
    }
    words = (word(), word(), word(), word())
  }

  /// Reads 64 lower-case hexadecimal digits; `nil` for anything else.
  public init?(_ text: some StringProtocol) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.byteCount)
    var high: UInt8?
    for digit in text.utf8 {
      let value: UInt8
      switch digit {
      case 0x30...0x39: value = digit - 0x30
      case 0x61...0x66: value = digit - 0x57
      default: return nil
      }
      if let first = high {
        guard bytes.count < Self.byteCount else { return nil }
        bytes.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    guard high == nil else { return nil }
    self.init(bytes)
  }

  /// The 32 bytes.
  public var bytes: [UInt8] {
    [words.0, words.1, words.2, words.3].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) }
    }
  }

  /// 64 lower-case hexadecimal digits.
  public var description: String {
    let digits = Array("0123456789abcdef".utf8)
    let text = bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return String(decoding: text, as: UTF8.self)
  }

  public static func == (left: Self, right: Self) -> Bool { left.words == right.words }

  public static func < (left: Self, right: Self) -> Bool { left.words < right.words }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
  }
}
