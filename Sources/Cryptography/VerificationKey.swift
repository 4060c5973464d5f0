/// A public key of RSA or of the curve P-256, to check signatures with SHA-256.
package final class VerificationKey: Sendable {
  /// The scheme of a key. A key checks only signatures of the same scheme.
  package enum Scheme: Sendable, Equatable {
    /// RSASSA-PKCS1-v1_5 (RFC 8017 §8.2).
    case rsa
    /// ECDSA on P-256 (FIPS 186-5), a signature being the 32 bytes of r and those of s.
    case p256
  }

  package let scheme: Scheme
  private let key: Algorithms.PublicKey

  /// Creates an RSA key from modulus and exponent, with their most significant byte first. Throws
  /// ``CryptographyError/invalidKey`` unless the modulus has 2,048 to 8,192 bits and the exponent
  /// is odd, above 1 and of 8 bytes at most.
  package init(rsaModulus modulus: [UInt8], exponent: [UInt8]) throws(CryptographyError) {
    let (n, e) = (Array(modulus.drop { $0 == 0 }), Array(exponent.drop { $0 == 0 }))
    guard (256...1_024).contains(n.count), n[0] >= 0x80 || n.count > 256,
      (1...8).contains(e.count), e != [1], let last = e.last, last & 1 == 1
    else { throw .invalidKey }
    guard let key = Algorithms.PublicKey(rsaModulus: n, exponent: e) else { throw .invalidKey }
    (scheme, self.key) = (.rsa, key)
  }

  /// Creates a key from a point of P-256: both coordinates with their most significant byte first.
  /// RFC 7518 §6.2.1.2 requires 32 bytes of each, but real issuers leave out leading zeros, or add
  /// one. Throws ``CryptographyError/invalidKey`` unless the point is on the curve.
  package init(p256 x: [UInt8], _ y: [UInt8]) throws(CryptographyError) {
    let point = try Self.coordinate(x) + Self.coordinate(y)
    guard let key = Algorithms.PublicKey(p256: point) else { throw .invalidKey }
    (scheme, self.key) = (.p256, key)
  }

  /// Returns whether the holder of the secret key signed exactly this message.
  package func isValid(_ signature: [UInt8], for message: [UInt8]) -> Bool {
    if scheme == .p256 && signature.count != 64 { return false }
    return key.isValid(signature, for: message, scheme: scheme)
  }

  /// Returns the same number in 32 bytes.
  private static func coordinate(_ bytes: [UInt8]) throws(CryptographyError) -> [UInt8] {
    let number = bytes.drop { $0 == 0 }
    guard !bytes.isEmpty, number.count <= 32 else { throw .invalidKey }
    return [UInt8](repeating: 0, count: 32 - number.count) + number
  }
}
