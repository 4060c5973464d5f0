#if canImport(CryptoKit)
  import CommonCrypto
  import CryptoKit
  import Foundation
  import Security

  /// The algorithms of this module by Apple's CryptoKit, and by CommonCrypto and Security for what
  /// CryptoKit does not have: AES in counter mode and RSA.
  enum Algorithms {
    /// A SHA-256 of content in parts.
    struct Digest: ~Copyable {
      private var hash = CryptoKit.SHA256()

      init() {}

      mutating func update(_ bytes: UnsafeRawBufferPointer) { hash.update(bufferPointer: bytes) }

      consuming func finish() -> [UInt8] { Array(hash.finalize()) }
    }

    static func digest(of bytes: UnsafeRawBufferPointer) -> [UInt8] {
      var digest = Digest()
      digest.update(bytes)
      return digest.finish()
    }

    static func hmac(of message: [UInt8], key: [UInt8]) -> [UInt8] {
      Array(
        HMAC<CryptoKit.SHA256>.authenticationCode(for: message, using: SymmetricKey(data: key)))
    }

    static func randomBytes(_ count: Int) -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: count)
      let status = SecRandomCopyBytes(kSecRandomDefault, count, &bytes)
      precondition(status == errSecSuccess, "the operating system gives no randomness")
      return bytes
    }

    // MARK: AES

    /// Returns the encrypted content with the tag at the end.
    static func aesGCMSeal(
      _ content: [UInt8], key: [UInt8], nonce: [UInt8], context: [UInt8]
    ) -> [UInt8] {
      guard let nonce = try? AES.GCM.Nonce(data: nonce),
        let box = try? AES.GCM.seal(
          content, using: SymmetricKey(data: key), nonce: nonce, authenticating: context)
      else { preconditionFailure("CryptoKit has no AES-256-GCM") }
      return Array(box.ciphertext) + Array(box.tag)
    }

    /// Returns the decrypted content of bytes with a tag at the end; `nil` if it is not authentic.
    static func aesGCMOpen(
      _ sealed: [UInt8], key: [UInt8], nonce: [UInt8], context: [UInt8]
    ) -> [UInt8]? {
      let size = sealed.count - AESGCM.tagBytes
      guard let nonce = try? AES.GCM.Nonce(data: nonce),
        let box = try? AES.GCM.SealedBox(
          nonce: nonce, ciphertext: Array(sealed[..<size]), tag: Array(sealed[size...])),
        let content = try? AES.GCM.open(
          box, using: SymmetricKey(data: key), authenticating: context)
      else { return nil }
      return Array(content)
    }

    // MARK: Ed25519

    static func ed25519PublicKey(of seed: [UInt8]) -> [UInt8] {
      Array(secretKey(seed).publicKey.rawRepresentation)
    }

    static func ed25519Signature(of message: [UInt8], seed: [UInt8]) -> [UInt8] {
      guard let signature = try? secretKey(seed).signature(for: message) else {
        preconditionFailure("CryptoKit could not sign")
      }
      return Array(signature)
    }

    static func isEd25519Signature(
      _ signature: [UInt8], of message: [UInt8], publicKey: [UInt8]
    ) -> Bool {
      let key = try? Curve25519.Signing.PublicKey(rawRepresentation: publicKey)
      return key?.isValidSignature(signature, for: message) ?? false
    }

    private static func secretKey(_ seed: [UInt8]) -> Curve25519.Signing.PrivateKey {
      guard let key = try? Curve25519.Signing.PrivateKey(rawRepresentation: seed) else {
        preconditionFailure("CryptoKit has no Ed25519")
      }
      return key
    }

    // MARK: RSA and P-256

    /// A public key to check signatures with SHA-256.
    final class PublicKey: Sendable {
      private enum Key {
        // SAFETY: the key is immutable, and Security's functions may be called by any thread.
        case rsa(SecKey)
        case p256(P256.Signing.PublicKey)
      }

      private nonisolated(unsafe) let key: Key

      /// Creates a key from the numbers of RSA without leading zeros; `nil` if it is none.
      init?(rsaModulus modulus: [UInt8], exponent: [UInt8]) {
        let numbers = DER.sequence(DER.integer(modulus), DER.integer(exponent))
        let attributes = [
          kSecAttrKeyType: kSecAttrKeyTypeRSA, kSecAttrKeyClass: kSecAttrKeyClassPublic,
        ]
        let key = SecKeyCreateWithData(Data(numbers) as CFData, attributes as CFDictionary, nil)
        guard let key else { return nil }
        self.key = .rsa(key)
      }

      /// Creates a key from the 64 bytes of a point's coordinates; `nil` if it is not on the curve.
      init?(p256 point: [UInt8]) {
        guard let key = try? P256.Signing.PublicKey(rawRepresentation: point) else { return nil }
        self.key = .p256(key)
      }

      /// Returns `true` if a signature is the message's: as RSA has it, or the 64 bytes of ECDSA's
      /// numbers.
      func isValid(
        _ signature: [UInt8], for message: [UInt8], scheme: VerificationKey.Scheme
      ) -> Bool {
        switch key {
        case .rsa(let key):
          return SecKeyVerifySignature(
            key, .rsaSignatureMessagePKCS1v15SHA256, Data(message) as CFData,
            Data(signature) as CFData, nil)
        case .p256(let key):
          let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
          return signature.map { key.isValidSignature($0, for: message) } ?? false
        }
      }
    }
  }
#endif
