import FerryTestSupport
import Testing

@testable import FerryCompression

@Suite("Content codings", .hangLimit)
struct ContentCodingTests {
  /// Returns text that compresses about as well as JSON.
  static func sample(count: Int) -> [UInt8] {
    var state: UInt64 = 42
    return (0..<count).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(ascii: "a") + UInt8(state >> 61)
    }
  }

  /// `printf 'ferry ferry ferry' | zstd`: no content size, a window of 2 MiB.
  static let streamedFrame = bytes("28b52ffd0458650000306665727279200100314a1148b8c83c")
  /// The same with `--long=27`: a window of 128 MiB.
  static let wideFrame = bytes("28b52ffd0488650000306665727279200100314a1148b8c83c")
  /// `printf 'ferry ferry ferry' | gzip -n`.
  static let gzipMember = bytes("1f8b08000000000000034b4b2d2aaa54484390005a65516611000000")
  static let ferry = Array("ferry ferry ferry".utf8)

  static func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.utf8.map { UInt8(String(UnicodeScalar($0)), radix: 16) ?? 0 }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  @Test(
    "compressed content is decompressed unchanged",
    arguments: ContentCoding.allCases, [0, 1, 1000, 65_535, 65_536, 65_537, 3_000_000])
  func roundTrip(coding: ContentCoding, count: Int) throws {
    let content = Self.sample(count: count)
    let coded = try coding.compress(content)
    #expect(try coding.decompress(coded, limit: count) == content)
    if count > 100 { #expect(coded.count < count / 2) }
  }

  @Test("frames and members made by the command line tools are read")
  func foreignEncoders() throws {
    #expect(try ContentCoding.zstd.decompress(Self.streamedFrame, limit: 17) == Self.ferry)
    #expect(try ContentCoding.gzip.decompress(Self.gzipMember, limit: 17) == Self.ferry)
  }

  @Test("several frames or members in a row are one content", arguments: ContentCoding.allCases)
  func concatenation(coding: ContentCoding) throws {
    let first = Self.sample(count: 65_536)
    let coded = try coding.compress(first) + coding.compress([]) + coding.compress(Self.ferry)
    #expect(try coding.decompress(coded, limit: 1 << 20) == first + Self.ferry)
  }

  @Test("the limit is exact", arguments: ContentCoding.allCases, [1, 5000, 65_536, 1_000_000])
  func limit(coding: ContentCoding, count: Int) throws {
    let coded = try coding.compress(Self.sample(count: count))
    #expect(try coding.decompress(coded, limit: count).count == count)
    #expect(throws: CompressionError.tooLarge(limit: count - 1)) {
      try coding.decompress(coded, limit: count - 1)
    }
  }

  @Test("a compression bomb stops at the limit", arguments: ContentCoding.allCases)
  func bomb(coding: ContentCoding) throws {
    let member = try coding.compress([UInt8](repeating: 0, count: 32 << 20))
    let bomb = Array([[UInt8]](repeating: member, count: 16).joined())
    #expect(throws: CompressionError.tooLarge(limit: 1 << 20)) {
      try coding.decompress(bomb, limit: 1 << 20)
    }
  }

  @Test("a window above 8 MiB is refused before it is allocated")
  func window() {
    #expect(throws: CompressionError.tooLarge(limit: 100)) {
      try ContentCoding.zstd.decompress(Self.wideFrame, limit: 100)
    }
  }

  @Test("every truncation is malformed", arguments: ContentCoding.allCases)
  func truncation(coding: ContentCoding) throws {
    let coded = coding == .zstd ? Self.streamedFrame : Self.gzipMember
    for count in 0..<coded.count {
      #expect(throws: CompressionError.malformed, "\(count) bytes") {
        try coding.decompress(Array(coded.prefix(count)), limit: 1000)
      }
    }
  }

  @Test("extra bytes after the end are malformed", arguments: ContentCoding.allCases)
  func trailingGarbage(coding: ContentCoding) throws {
    let coded = try coding.compress(Self.ferry)
    for tail in [[0], [0, 0, 0, 0, 0, 0, 0, 0], Array("garbage".utf8)] as [[UInt8]] {
      #expect(throws: CompressionError.malformed) {
        try coding.decompress(coded + tail, limit: 1000)
      }
    }
  }

  @Test("a damaged checksum is malformed", arguments: ContentCoding.allCases)
  func corruption(coding: ContentCoding) {
    var coded = coding == .zstd ? Self.streamedFrame : Self.gzipMember
    coded[coded.count - 8 + (coding == .zstd ? 6 : 2)] ^= 0xFF
    #expect(throws: CompressionError.malformed) { try coding.decompress(coded, limit: 1000) }
  }

  @Test("one coding's bytes are not accepted as the other's")
  func wrongCoding() {
    #expect(throws: CompressionError.malformed) {
      try ContentCoding.gzip.decompress(Self.streamedFrame, limit: 1000)
    }
    #expect(throws: CompressionError.malformed) {
      try ContentCoding.zstd.decompress(Self.gzipMember, limit: 1000)
    }
  }

  @Test("levels outside of the library's range are clamped", arguments: ContentCoding.allCases)
  func levels(coding: ContentCoding) throws {
    for level in [-5, 0, 1, 9, 1000] {
      let coded = try coding.compress(Self.ferry, level: level)
      #expect(try coding.decompress(coded, limit: 17) == Self.ferry)
    }
  }
}
