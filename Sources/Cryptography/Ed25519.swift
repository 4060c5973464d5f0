/// An error of this module.
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

    /// Creates a stored key; throws ``CryptographyError/invalidKey`` unless it has 32 bytes.
    package init(_ bytes: [UInt8]) throws(CryptographyError) {
      guard bytes.count == Ed25519.keyBytes else { throw .invalidKey }
      self.bytes = bytes
    }

    /// The key for others to check this one's signatures.
    package var publicKey: PublicKey {
      PublicKey(checked: Algorithms.ed25519PublicKey(of: bytes))
    }

    /// Returns the 64 bytes of a signature. CryptoKit's is another one each time.
    package func sign(_ message: [UInt8]) -> [UInt8] {
      Algorithms.ed25519Signature(of: message, seed: bytes)
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
      signature.count == Ed25519.signatureBytes
        && Algorithms.isEd25519Signature(signature, of: message, publicKey: bytes)
    }
  }
}

/// The operating system's randomness, fit for keys.
package enum SecureRandom {
  /// Returns `count` random bytes.
  package static func bytes(_ count: Int) -> [UInt8] { Algorithms.randomBytes(count) }
}
