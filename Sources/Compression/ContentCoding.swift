import FerryPlatform

/// A compression with a name for `Content-Encoding` (RFC 9110 §8.4.1, RFC 8878).
package enum ContentCoding: String, Sendable, CaseIterable {
  #if SystemLibraries && !canImport(Darwin)
    case zstd
  #endif
  case gzip

  /// The best coding of this module: zstd, or gzip in a build without the trait `SystemLibraries`.
  package static var preferred: ContentCoding { allCases[0] }

  /// The codings this module decodes, in order of preference, as an `Accept-Encoding` value.
  package static let acceptEncoding = allCases.map(\.rawValue).joined(separator: ", ")

  /// Creates the coding of a `Content-Encoding` token, without regard to case; `x-gzip` is gzip
  /// (RFC 9110 §8.4.1.3).
  package init?(token: some StringProtocol) {
    switch token.lowercasedASCII {
    #if SystemLibraries && !canImport(Darwin)
      case "zstd": self = .zstd
    #endif
    case "gzip", "x-gzip": self = .gzip
    default: return nil
    }
  }

  /// Finds the coding of a frame or member by the first bytes; `nil` if this build has none for it.
  package init?(of bytes: some Sequence<UInt8>) {
    let coding = Self.allCases.first { bytes.starts(with: $0.magicNumber) }
    guard let coding else { return nil }
    self = coding
  }

  /// The first bytes of every frame (RFC 8878 §3.1.1) or member (RFC 1952 §2.3.1).
  private var magicNumber: [UInt8] {
    switch self {
    #if SystemLibraries && !canImport(Darwin)
      case .zstd: [0x28, 0xB5, 0x2F, 0xFD]
    #endif
    case .gzip: [0x1F, 0x8B]
    }
  }

  /// Codes `bytes` as one frame or member.
  ///
  /// `level` is the library's own: -7…19 for zstd (3 unless given; negative ones are the fastest),
  /// 1…9 for gzip (5 unless given).
  /// Out-of-range levels are clamped.
  package func compress(_ bytes: [UInt8], level: Int? = nil) throws(CompressionError) -> [UInt8] {
    switch self {
    #if SystemLibraries && !canImport(Darwin)
      case .zstd: try Zstandard.compress(bytes, level: min(max(level ?? 3, -7), 19))
    #endif
    case .gzip: try Gzip.compress(bytes, level: min(max(level ?? 5, 1), 9))
    }
  }

  /// Codes `bytes` as one frame or member, in little time.
  package func compressQuickly(_ bytes: [UInt8]) throws(CompressionError) -> [UInt8] {
    switch self {
    #if SystemLibraries && !canImport(Darwin)
      case .zstd: try compress(bytes, level: -3)
    #endif
    case .gzip: try compress(bytes, level: 1)
    }
  }

  /// Decodes `bytes`, which may be several frames or members one after another.
  ///
  /// Works piece by piece and stops as soon as the content exceeds `limit` bytes. So a bomb costs
  /// no more than `limit` and a buffer. Throws `tooLarge`, `malformed` or `failed`.
  package func decompress(_ bytes: [UInt8], limit: Int) throws(CompressionError) -> [UInt8] {
    switch self {
    #if SystemLibraries && !canImport(Darwin)
      case .zstd: try Zstandard.decompress(bytes, limit: limit)
    #endif
    case .gzip: try Gzip.decompress(bytes, limit: limit)
    }
  }
}
