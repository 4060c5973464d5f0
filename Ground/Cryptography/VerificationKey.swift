import CFerryOpenSSL

/// A public key of RSA or of the curve P-256, that checks signatures with SHA-256.
package final class VerificationKey: Sendable {
  /// The scheme that the key is for. A key checks signatures of its own scheme only.
  package enum Scheme: Sendable, Equatable {
    /// RSASSA-PKCS1-v1_5 (RFC 8017 §8.2).
    case rsa
    /// ECDSA on P-256 (FIPS 186-5), a signature being the 32 bytes of r and those of s.
    case p256
  }

  package let scheme: Scheme
  // SAFETY: OpenSSL's keys may be read by several threads; it is never changed after `init`.
  private nonisolated(unsafe) let key: OpaquePointer

  /// Creates an RSA key from modulus and exponent, with their most significant byte first. Throws
  /// ``CryptographyError/invalidKey`` unless the modulus has 2,048 to 8,192 bits and the exponent
  /// is odd, above 1 and of 8 bytes at most.
  package init(rsaModulus modulus: [UInt8], exponent: [UInt8]) throws(CryptographyError) {
    let (n, e) = (Array(modulus.drop { $0 == 0 }), Array(exponent.drop { $0 == 0 }))
    guard (256...1_024).contains(n.count), n[0] >= 0x80 || n.count > 256,
      (1...8).contains(e.count), e != [1], let last = e.last, last & 1 == 1
    else { throw .invalidKey }
    scheme = .rsa
    // 1.2.840.113549.1.1.1
    let algorithm = DER.sequence(
      DER.identifier([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]), DER.null)
    let numbers = DER.sequence(DER.integer(n), DER.integer(e))
    key = try Self.parse(DER.sequence(algorithm, DER.bitString(numbers)))
  }

  /// Creates a key from a point of P-256: both coordinates with their most significant byte first.
  /// RFC 7518 §6.2.1.2 requires 32 bytes of each, but real issuers leave out leading zeros, or add
  /// one. Throws ``CryptographyError/invalidKey`` unless the point is on the curve.
  package init(p256 x: [UInt8], _ y: [UInt8]) throws(CryptographyError) {
    let point = try [4] + Self.coordinate(x) + Self.coordinate(y)
    scheme = .p256
    // 1.2.840.10045.2.1 and 1.2.840.10045.3.1.7
    let algorithm = DER.sequence(
      DER.identifier([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]),
      DER.identifier([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]))
    key = try Self.parse(DER.sequence(algorithm, DER.bitString(point)))
  }

  deinit { EVP_PKEY_free(key) }

  /// Returns whether the holder of the secret key signed exactly this message.
  package func isValid(_ signature: [UInt8], for message: [UInt8]) -> Bool {
    var encoded = signature
    if scheme == .p256 {
      guard signature.count == 64 else { return false }
      encoded = DER.sequence(
        DER.integer(signature.prefix(32)), DER.integer(signature.suffix(32)))
    }
    let context = EVP_MD_CTX_new()
    defer {
      EVP_MD_CTX_free(context)
      ERR_clear_error()
    }
    return EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1
      && EVP_DigestVerify(context, encoded, encoded.count, message, message.count) == 1
  }

  /// Returns the same number in 32 bytes.
  private static func coordinate(_ bytes: [UInt8]) throws(CryptographyError) -> [UInt8] {
    let number = bytes.drop { $0 == 0 }
    guard !bytes.isEmpty, number.count <= 32 else { throw .invalidKey }
    return [UInt8](repeating: 0, count: 32 - number.count) + number
  }

  /// Reads a SubjectPublicKeyInfo (RFC 5280 §4.1.2.7).
  private static func parse(_ der: [UInt8]) throws(CryptographyError) -> OpaquePointer {
    let key = der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
      var start = bytes.baseAddress
      return d2i_PUBKEY(nil, &start, bytes.count)
    }
    guard let key else {
      ERR_clear_error()
      throw .invalidKey
    }
    return key
  }
}
