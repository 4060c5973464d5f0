import FerryConformance

/// A valid or interesting input, with the places at which it can be changed sensibly.
struct FuzzSample: Sendable {
  let bytes: [UInt8]
  /// Strings with their quotes, numbers, words, arrays and objects, and members.
  let spans: [Range<Int>]

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    spans = Self.spans(of: bytes)
  }

  /// Finds values in a text; it need not be JSON. At most 2,000.
  private static func spans(of bytes: [UInt8]) -> [Range<Int>] {
    var (spans, open): ([Range<Int>], [Int]) = ([], [])
    var place = 0
    while place < bytes.count, spans.count < 2_000 {
      let start = place
      place += 1
      switch bytes[start] {
      case UInt8(ascii: "\""):
        while place < bytes.count, bytes[place] != UInt8(ascii: "\"") {
          place += bytes[place] == UInt8(ascii: "\\") ? 2 : 1
        }
        place = min(bytes.count, place + 1)
        spans.append(start..<place)
      case UInt8(ascii: "["), UInt8(ascii: "{"), UInt8(ascii: "("): open.append(start)
      case UInt8(ascii: "]"), UInt8(ascii: "}"), UInt8(ascii: ")"):
        if let begin = open.popLast() { spans.append(begin..<place) }
      case let byte where isWord(byte):
        while place < bytes.count, isWord(bytes[place]) { place += 1 }
        spans.append(start..<place)
      default: break
      }
    }
    return spans
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2D, 0x2E, 0x5F, 0x80...0xFF: true
    default: false
    }
  }
}

/// Changes inputs, by bytes and by values.
struct FuzzMutator {
  /// Bytes of an input.
  static let sizeMax = 32 << 10

  private(set) var random: SeededRandom

  init(_ random: SeededRandom) { self.random = random }

  /// Returns a number below `bound`.
  mutating func below(_ bound: Int) -> Int { random.below(bound) }

  /// Returns an input made from a valid sample, or, in one of four cases, from any.
  mutating func input(valid: [FuzzSample], refused: [FuzzSample]) -> [UInt8] {
    let samples = refused.isEmpty || random.chance(3, in: 4) ? valid : refused
    let sample = samples[random.below(samples.count)]
    var bytes = sample.bytes
    guard !random.chance(1, in: 50) else { return bytes }
    if !sample.spans.isEmpty, random.chance(3, in: 4) {
      changeValue(&bytes, sample, samples[random.below(samples.count)])
    } else {
      changeBytes(&bytes, samples[random.below(samples.count)].bytes)
    }
    while random.chance(1, in: 6) { changeBytes(&bytes, sample.bytes) }
    return bytes.count <= Self.sizeMax ? bytes : Array(bytes.prefix(Self.sizeMax))
  }

  // MARK: Values

  private mutating func changeValue(
    _ bytes: inout [UInt8], _ sample: FuzzSample, _ other: FuzzSample
  ) {
    let span = sample.spans[random.below(sample.spans.count)]
    let old = Array(bytes[span])
    let new: [UInt8] =
      switch random.below(12) {
      case 0, 1, 2, 3: old.first == 0x22 ? text() : word()
      case 9: word()
      case 10: text()
      case 11: []
      case 4: old + [UInt8(ascii: ",")] + old
      case 5:
        if other.spans.isEmpty {
          old
        } else {
          Array(other.bytes[other.spans[random.below(other.spans.count)]])
        }
      case 6: Array(repeating: UInt8(ascii: "["), count: 1 + random.below(24)) + old
      case 7: [UInt8(ascii: "[")] + old + [UInt8(ascii: "]")]
      default: old + Array(repeating: old.last ?? 0, count: random.below(200))
      }
    bytes.replaceSubrange(span, with: new)
  }

  /// Returns a value that is often a limit of a reader.
  private mutating func word() -> [UInt8] {
    Array(Self.words[random.below(Self.words.count)].utf8)
  }

  private static let words = [
    "0", "-0", "1", "-1", "00", "1.0", "1e400", "-1e-400", "1e+16", "0.1", "127", "65535", "65536",
    "2147483647", "2147483648", "4611686018427387904", "9007199254740993", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551616",
    "99999999999999999999999999", "null", "true", "false", "nul", "[]", "{}", "[null]", "\"\"",
    "\"0\"", "\"-1\"", "\"9223372036854775807\"", "\"4611686018427387905\"",
    "\"00000000-0000-0000-0000-000000000000\"", "\"ffffffff-ffff-ffff-ffff-ffffffffffff\"",
    "\"0199c82c-c001-8000-800a-000000000001\"", "\"ffffffffffffffff\"", "\"0000000000000000\"",
    "{\"int\":\"1\"}", "{\"real\":\"inf\"}", "{\"real\":\"nan\"}", "{\"blob\":\"AAE=\"}",
    "{\"blob\":\"AAF=\"}", "{\"key\":true}", "[\"always\"]", "[\"not\",[\"always\"]]",
    "\"\\u0000\"", "\"\\ud800\"", "\"\\ud83d\\ude00\"", "\"ferry_schema\"", "\"insert\"",
    "\"update\"", "\"delete\"", "\"batch\"", "\"*\"", "\"../x\"", "\"\\\"\"", "\"'\"",
  ]

  /// A string of hostile pieces.
  private mutating func text() -> [UInt8] {
    var text: [UInt8] = [0x22]
    for _ in 0...random.below(4) {
      text += Array(Self.pieces[random.below(Self.pieces.count)].utf8)
    }
    if random.chance(1, in: 8) {
      text += Array(repeating: 0x78, count: [127, 128, 129, 512, 513, 5_000][random.below(6)])
    }
    return text + [0x22]
  }

  private static let pieces = [
    "\u{600}\\\"", "\\\"\u{300}", "'; DROP TABLE x; --", "\u{202E}", "\u{FEFF}", "e\u{301}",
    "\u{E9}", "S\u{212A}U", "SKU", "\\u0000", "\\n", "\\ud800\\udc00", "%00", "%2e%2e%2f",
    "\u{1F600}",
    "a", " ", ",", "=", ";", "*", "-", "--", "/*", "\u{7F}", "\\u001b[2J",
  ]

  // MARK: Bytes

  private mutating func changeBytes(_ bytes: inout [UInt8], _ other: [UInt8]) {
    guard !bytes.isEmpty else {
      bytes = Array(other.prefix(random.below(64)))
      return
    }
    let place = random.below(bytes.count)
    let length = min(bytes.count - place, 1 + random.below(random.chance(1, in: 4) ? 400 : 6))
    switch random.below(8) {
    case 0: bytes[place] ^= 1 << UInt8(random.below(8))
    case 1: bytes[place] = UInt8(random.below(256))
    case 2:
      let marks = Array("\"\\{}[]:,'`;%&=/?\0\n\r\t\u{7F}".utf8) + [0xC0, 0xED, 0xFF, 0xF4, 0x80]
      bytes[place] = marks[random.below(marks.count)]
    case 3: bytes.removeSubrange(place..<place + length)
    case 4: bytes.insert(contentsOf: Array(bytes[place..<place + length]), at: place)
    case 5: bytes.insert(contentsOf: (0..<length).map { _ in UInt8(random.below(256)) }, at: place)
    case 6: bytes.removeSubrange(place...)
    default:
      guard !other.isEmpty else { return }
      let from = random.below(other.count)
      bytes.replaceSubrange(place..<place + length, with: other[from...].prefix(length * 2))
    }
  }
}
