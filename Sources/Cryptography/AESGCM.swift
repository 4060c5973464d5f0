/// AES-256-GCM (NIST SP 800-38D).
package struct AESGCM: Sendable, Equatable {
  /// Bytes of the key.
  package static let keyBytes = 32
  /// Bytes of the nonce, which must never be used again under one key.
  package static let nonceBytes = 12
  /// Bytes added by sealing at the end.
  package static let tagBytes = 16

  private let key: [UInt8]

  /// Creates a cipher; throws ``CryptographyError/invalidKey`` unless the key has 32 bytes.
  package init(key: [UInt8]) throws(CryptographyError) {
    guard key.count == Self.keyBytes else { throw .invalidKey }
    self.key = key
  }

  /// Returns the content encrypted, with the tag at the end: 16 bytes longer.
  ///
  /// - Parameters:
  ///   - nonce: 12 bytes, never used before under this key.
  ///   - context: Bytes that are not stored but must be the same at opening, such as the content's
  ///     place.
  package func seal(_ content: [UInt8], nonce: [UInt8], context: [UInt8] = []) -> [UInt8] {
    precondition(nonce.count == Self.nonceBytes, "a nonce has 12 bytes")
    return Algorithms.aesGCMSeal(content, key: key, nonce: nonce, context: context)
  }

  /// Returns the decrypted content. Throws ``CryptographyError/notAuthentic`` if a byte of it, the
  /// nonce, the context or the key is different.
  package func open(
    _ sealed: [UInt8], nonce: [UInt8], context: [UInt8] = []
  ) throws(CryptographyError) -> [UInt8] {
    guard sealed.count >= Self.tagBytes, nonce.count == Self.nonceBytes,
      let content = Algorithms.aesGCMOpen(sealed, key: key, nonce: nonce, context: context)
    else { throw .notAuthentic }
    return content
  }
}
