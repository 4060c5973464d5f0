/// AES-256 in counter mode (NIST SP 800-38A §6.5).
///
/// Encrypts and decrypts any range of a file at the given offset, without the rest. It does not
/// detect changed bytes: a reader needs a hash as well.
package struct AESCTR: Sendable, Equatable {
  /// Bytes of the key, which may encrypt one content only: two contents under one key reveal their
  /// difference.
  package static let keyBytes = 32
  private static let blockBytes: Int64 = 16

  private let key: [UInt8]

  /// Creates a cipher; throws ``CryptographyError/invalidKey`` unless the key has 32 bytes.
  package init(key: [UInt8]) throws(CryptographyError) {
    guard key.count == Self.keyBytes else { throw .invalidKey }
    self.key = key
  }

  /// Returns the bytes at `offset` encrypted, or decrypted: both are the same operation.
  package func applied(to bytes: [UInt8], at offset: Int64) -> [UInt8] {
    precondition(offset >= 0, "a place in a file is not negative")
    if bytes.isEmpty { return [] }
    let block = UInt64(offset / Self.blockBytes)
    let counter = (0..<16).map { $0 < 8 ? 0 : UInt8(truncatingIfNeeded: block >> (8 * (15 - $0))) }
    // A range may begin within a block; the first bytes of this block's key stream are skipped.
    let skipped = Int(offset % Self.blockBytes)
    return Algorithms.aesCTR(bytes, key: key, counter: counter, skipped: skipped)
  }
}
