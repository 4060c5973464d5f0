/// A compression that HTTP can name in `Content-Encoding` (RFC 9110 §8.4.1, RFC 8878).
package enum ContentCoding: String, Sendable, CaseIterable {
  case zstd
  case gzip

  /// The codings this module decodes, in order of preference, as an `Accept-Encoding` value.
  package static let acceptEncoding = allCases.map(\.rawValue).joined(separator: ", ")

  /// Creates the coding that a `Content-Encoding` token names, without regard to case; `x-gzip` is
  /// gzip (RFC 9110 §8.4.1.3).
  package init?(token: some StringProtocol) {
    switch token.lowercased() {
    case "zstd": self = .zstd
    case "gzip", "x-gzip": self = .gzip
    default: return nil
    }
  }

  /// Codes `bytes` as one frame or member.
  ///
  /// `level` is the library's own: -7…19 for zstd (3 unless given; negative ones are the fastest),
  /// 1…9 for gzip (5 unless given).
  /// Out-of-range levels are clamped.
  package func compress(_ bytes: [UInt8], level: Int? = nil) throws(CompressionError) -> [UInt8] {
    switch self {
    case .zstd: try Zstandard.compress(bytes, level: min(max(level ?? 3, -7), 19))
    case .gzip: try Gzip.compress(bytes, level: min(max(level ?? 5, 1), 9))
    }
  }

  /// Decodes `bytes`, which may be several frames or members one after another.
  ///
  /// Works piece by piece and stops as soon as the content exceeds `limit` bytes. So a bomb costs
  /// no more than `limit` and a buffer. Throws `tooLarge`, `malformed` or `failed`.
  package func decompress(_ bytes: [UInt8], limit: Int) throws(CompressionError) -> [UInt8] {
    switch self {
    case .zstd: try Zstandard.decompress(bytes, limit: limit)
    case .gzip: try Gzip.decompress(bytes, limit: limit)
    }
  }
}
