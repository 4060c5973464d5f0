import Foundation

/// Compressed bodies made elsewhere, so the tests need no compressor.
enum CannedBodies {
  /// `ferry ` forty times, by gzip.
  static let gzip = decode("H4sIAAAAAAACA0tLLSqqVEgbMSQARypvNPAAAAA=")

  /// 256 KiB of zeros, by gzip.
  static let gzipBomb = decode(
    """
    H4sIAAAAAAACA+3BMQEAAADCoPVP7W0HoAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    AAAAAAAAAAAA3gAi6g7iAAAEAA==
    """)

  /// Returns `blocks` × 128 KiB of zeros as a zstd frame (RFC 8878 §3.1): each block repeats one
  /// byte.
  static func zstdBomb(blocks: Int) -> [UInt8] {
    // Magic number; descriptor: no checksum, no content size; window of 128 KiB.
    var frame: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38]
    for index in 1...blocks {
      let header = UInt32(128 << 10) << 3 | 1 << 1 | (index == blocks ? 1 : 0)
      frame += [UInt8(header & 0xFF), UInt8(header >> 8 & 0xFF), UInt8(header >> 16), 0]
    }
    return frame
  }

  private static func decode(_ text: String) -> [UInt8] {
    Data(base64Encoded: text, options: .ignoreUnknownCharacters).map(Array.init) ?? []
  }
}
