import CFerryOpenSSL

/// AES-256 in counter mode (NIST SP 800-38A §6.5) by OpenSSL.
///
/// Encrypts and decrypts any range of a file at its offset, without the rest. It does not detect
/// changed bytes: a reader needs a hash as well.
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
    let cipher = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(cipher) }
    let block = UInt64(offset / Self.blockBytes)
    let counter = (0..<16).map { $0 < 8 ? 0 : UInt8(truncatingIfNeeded: block >> (8 * (15 - $0))) }
    // A range may begin within a block; the first bytes of that block's key stream are skipped.
    let skipped = Int(offset % Self.blockBytes)
    var unused = [UInt8](repeating: 0, count: Int(Self.blockBytes))
    let zeros = unused
    var result = bytes
    var count: Int32 = 0
    let done = result.withUnsafeMutableBytes { buffer in
      let bytes = buffer.bindMemory(to: UInt8.self)
      guard let start = bytes.baseAddress,
        EVP_EncryptInit_ex(cipher, EVP_aes_256_ctr(), nil, key, counter) == 1,
        EVP_EncryptUpdate(cipher, &unused, &count, zeros, Int32(skipped)) == 1
      else { return false }
      return EVP_EncryptUpdate(cipher, start, &count, start, Int32(bytes.count)) == 1
    }
    precondition(done, "OpenSSL has no AES-256-CTR")
    return result
  }
}
