import CFerryOpenSSL

/// AES-256-GCM (NIST SP 800-38D) by OpenSSL.
package struct AESGCM: Sendable, Equatable {
  /// Bytes of the key.
  package static let keyBytes = 32
  /// Bytes of the nonce, which must never be used again under one key.
  package static let nonceBytes = 12
  /// Bytes that sealing adds at the end.
  package static let tagBytes = 16

  private let key: [UInt8]

  /// Creates a cipher; throws ``CryptographyError/invalidKey`` unless the key has 32 bytes.
  package init(key: [UInt8]) throws(CryptographyError) {
    guard key.count == Self.keyBytes else { throw .invalidKey }
    self.key = key
  }

  /// Returns the content encrypted, with its tag at the end: 16 bytes longer.
  ///
  /// - Parameters:
  ///   - nonce: 12 bytes, never used before under this key.
  ///   - context: Bytes that are not stored but must be the same at opening, such as the content's
  ///     place.
  package func seal(_ content: [UInt8], nonce: [UInt8], context: [UInt8] = []) -> [UInt8] {
    precondition(nonce.count == Self.nonceBytes, "a nonce has 12 bytes")
    let cipher = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(cipher) }
    var sealed = [UInt8](repeating: 0, count: content.count + Self.tagBytes)
    var count: Int32 = 0
    let done = sealed.withUnsafeMutableBytes { output in
      let output = output.bindMemory(to: UInt8.self)
      guard let start = output.baseAddress else { return false }
      return EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), nil, key, nonce) == 1
        && EVP_EncryptUpdate(cipher, nil, &count, context, Int32(context.count)) == 1
        && EVP_EncryptUpdate(cipher, start, &count, content, Int32(content.count)) == 1
        && EVP_EncryptFinal_ex(cipher, start + content.count, &count) == 1
        && ferry_gcm_get_tag(cipher, start + content.count) == 1
    }
    precondition(done, "OpenSSL has no AES-256-GCM")
    return sealed
  }

  /// Returns the decrypted content. Throws ``CryptographyError/notAuthentic`` if a byte of it, the
  /// nonce, the context or the key is different.
  package func open(
    _ sealed: [UInt8], nonce: [UInt8], context: [UInt8] = []
  ) throws(CryptographyError) -> [UInt8] {
    guard sealed.count >= Self.tagBytes, nonce.count == Self.nonceBytes else {
      throw .notAuthentic
    }
    let size = sealed.count - Self.tagBytes
    var tag = Array(sealed[size...])
    // One byte more, so that there is an address for no content, too.
    var content = [UInt8](repeating: 0, count: size + 1)
    let cipher = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(cipher) }
    var count: Int32 = 0
    var rest: Int32 = 0
    let isAuthentic =
      EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), nil, key, nonce) == 1
      && EVP_DecryptUpdate(cipher, nil, &count, context, Int32(context.count)) == 1
      && EVP_DecryptUpdate(cipher, &content, &count, sealed, Int32(size)) == 1
      && ferry_gcm_set_tag(cipher, &tag) == 1
      && EVP_DecryptFinal_ex(cipher, &tag, &rest) == 1
    guard isAuthentic else { throw .notAuthentic }
    content.removeLast()
    return content
  }
}
