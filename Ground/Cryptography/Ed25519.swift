import CFerryOpenSSL

/// An error of OpenSSL.
package enum CryptographyError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The bytes are not a key of this kind.
  case invalidKey
  /// The content was changed, or sealed with another key or for another place.
  case notAuthentic

  package var description: String {
    switch self {
    case .invalidKey: "this is not a key of the right kind and length"
    case .notAuthentic: "the content was altered, or the key is another one"
    }
  }
}

/// Signatures of RFC 8032.
package enum Ed25519 {
  /// Bytes of a key, public or secret.
  package static let keyBytes = 32
  /// Bytes of a signature.
  package static let signatureBytes = 64

  /// A secret key: 32 random bytes (RFC 8032 §5.1.5).
  package struct SecretKey: Sendable, Equatable {
    /// The seed, which must remain secret.
    package let bytes: [UInt8]

    /// Creates a new key from the operating system's randomness.
    package init() { bytes = SecureRandom.bytes(Ed25519.keyBytes) }

    /// Creates a key that was kept; throws ``CryptographyError/invalidKey`` unless it has 32 bytes.
    package init(_ bytes: [UInt8]) throws(CryptographyError) {
      guard bytes.count == Ed25519.keyBytes else { throw .invalidKey }
      self.bytes = bytes
    }

    /// The key that others check this one's signatures with.
    package var publicKey: PublicKey {
      withKey { key in
        var bytes = [UInt8](repeating: 0, count: Ed25519.keyBytes)
        var count = bytes.count
        let status = EVP_PKEY_get_raw_public_key(key, &bytes, &count)
        precondition(status == 1 && count == Ed25519.keyBytes, "OpenSSL has no Ed25519")
        return PublicKey(checked: bytes)
      }
    }

    /// Returns the 64 bytes of the signature; the same each time.
    package func sign(_ message: [UInt8]) -> [UInt8] {
      withKey { key in
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        var signature = [UInt8](repeating: 0, count: Ed25519.signatureBytes)
        var count = signature.count
        let status =
          EVP_DigestSignInit(context, nil, nil, nil, key) == 1
          && EVP_DigestSign(context, &signature, &count, message, message.count) == 1
        precondition(status && count == Ed25519.signatureBytes, "OpenSSL could not sign")
        return signature
      }
    }

    private func withKey<R>(_ body: (OpaquePointer) -> R) -> R {
      let key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, bytes, bytes.count)
      guard let key else { preconditionFailure("OpenSSL has no Ed25519") }
      defer { EVP_PKEY_free(key) }
      return body(key)
    }
  }

  /// A public key.
  package struct PublicKey: Sendable, Equatable, Hashable {
    /// As RFC 8032 §5.1.5 encodes it.
    package let bytes: [UInt8]

    fileprivate init(checked bytes: [UInt8]) { self.bytes = bytes }

    /// Creates a key from elsewhere; throws ``CryptographyError/invalidKey`` unless it has 32
    /// bytes.
    package init(_ bytes: [UInt8]) throws(CryptographyError) {
      guard bytes.count == Ed25519.keyBytes else { throw .invalidKey }
      self.bytes = bytes
    }

    /// Returns whether the holder of the secret key signed exactly this message.
    package func isValid(_ signature: [UInt8], for message: [UInt8]) -> Bool {
      guard signature.count == Ed25519.signatureBytes else { return false }
      let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, bytes, bytes.count)
      guard let key else { return false }
      defer { EVP_PKEY_free(key) }
      let context = EVP_MD_CTX_new()
      defer { EVP_MD_CTX_free(context) }
      return EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1
        && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
  }
}

/// The operating system's randomness, fit for keys.
package enum SecureRandom {
  /// Returns `count` random bytes.
  package static func bytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let status = RAND_bytes(&bytes, Int32(count))
    precondition(status == 1, "the operating system gives no randomness")
    return bytes
  }
}
