#if !canImport(CryptoKit)
  import CFerryOpenSSL

  /// OpenSSL's libcrypto in this process.
  package enum OpenSSL {
    private static let keepsTables: Bool =
      OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) == 1

    /// Makes OpenSSL keep its tables. By itself it frees them in exit(3), while other threads may
    /// still compute a hash (OPENSSL_init_crypto(3)). It has to come before any other use.
    package static func prepare() { precondition(keepsTables, "OpenSSL cannot be used") }
  }

  /// The algorithms of this module by OpenSSL's libcrypto.
  enum Algorithms {
    /// A SHA-256 of content in parts.
    struct Digest: ~Copyable {
      private let context: OpaquePointer

      init() {
        OpenSSL.prepare()
        guard let context = EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
        self.context = context
        let status = EVP_DigestInit_ex(context, EVP_sha256(), nil)
        precondition(status == 1, "OpenSSL has no SHA-256")
      }

      deinit { EVP_MD_CTX_free(context) }

      mutating func update(_ bytes: UnsafeRawBufferPointer) {
        let status = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
        precondition(status == 1, "OpenSSL could not go on with SHA-256")
      }

      consuming func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        let status = EVP_DigestFinal_ex(context, &digest, nil)
        precondition(status == 1, "OpenSSL could not end SHA-256")
        return digest
      }
    }

    static func digest(of bytes: UnsafeRawBufferPointer) -> [UInt8] {
      OpenSSL.prepare()
      var digest = [UInt8](repeating: 0, count: 32)
      let status = EVP_Digest(bytes.baseAddress, bytes.count, &digest, nil, EVP_sha256(), nil)
      precondition(status == 1, "OpenSSL has no SHA-256")
      return digest
    }

    static func hmac(of message: [UInt8], key: [UInt8]) -> [UInt8] {
      OpenSSL.prepare()
      var code = [UInt8](repeating: 0, count: 32)
      var count: UInt32 = 0
      let result = HMAC(
        EVP_sha256(), key, Int32(key.count), message, message.count, &code, &count)
      precondition(result != nil && count == 32, "OpenSSL has no HMAC")
      return code
    }

    static func randomBytes(_ count: Int) -> [UInt8] {
      OpenSSL.prepare()
      var bytes = [UInt8](repeating: 0, count: count)
      let status = RAND_bytes(&bytes, Int32(count))
      precondition(status == 1, "the operating system gives no randomness")
      return bytes
    }

    // MARK: AES

    /// Returns the encrypted content with the tag at the end.
    static func aesGCMSeal(
      _ content: [UInt8], key: [UInt8], nonce: [UInt8], context: [UInt8]
    ) -> [UInt8] {
      OpenSSL.prepare()
      let cipher = EVP_CIPHER_CTX_new()
      defer { EVP_CIPHER_CTX_free(cipher) }
      var sealed = [UInt8](repeating: 0, count: content.count + AESGCM.tagBytes)
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

    /// Returns the decrypted content of bytes with a tag at the end; `nil` if it is not authentic.
    static func aesGCMOpen(
      _ sealed: [UInt8], key: [UInt8], nonce: [UInt8], context: [UInt8]
    ) -> [UInt8]? {
      OpenSSL.prepare()
      let size = sealed.count - AESGCM.tagBytes
      var tag = Array(sealed[size...])
      // One byte more, so there is an address for no content, too.
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
      guard isAuthentic else { return nil }
      content.removeLast()
      return content
    }

    // MARK: Ed25519

    static func ed25519PublicKey(of seed: [UInt8]) -> [UInt8] {
      OpenSSL.prepare()
      return withSecretKey(seed) { key in
        var bytes = [UInt8](repeating: 0, count: Ed25519.keyBytes)
        var count = bytes.count
        let status = EVP_PKEY_get_raw_public_key(key, &bytes, &count)
        precondition(status == 1 && count == Ed25519.keyBytes, "OpenSSL has no Ed25519")
        return bytes
      }
    }

    static func ed25519Signature(of message: [UInt8], seed: [UInt8]) -> [UInt8] {
      OpenSSL.prepare()
      return withSecretKey(seed) { key in
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

    static func isEd25519Signature(
      _ signature: [UInt8], of message: [UInt8], publicKey: [UInt8]
    ) -> Bool {
      OpenSSL.prepare()
      let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, publicKey, publicKey.count)
      guard let key else { return false }
      defer { EVP_PKEY_free(key) }
      let context = EVP_MD_CTX_new()
      defer { EVP_MD_CTX_free(context) }
      return EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1
        && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }

    private static func withSecretKey<R>(_ seed: [UInt8], _ body: (OpaquePointer) -> R) -> R {
      let key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, seed, seed.count)
      guard let key else { preconditionFailure("OpenSSL has no Ed25519") }
      defer { EVP_PKEY_free(key) }
      return body(key)
    }

    // MARK: RSA and P-256

    /// A public key to check signatures with SHA-256.
    final class PublicKey: Sendable {
      // SAFETY: OpenSSL's keys may be read by several threads; it is never changed after `init`.
      private nonisolated(unsafe) let key: OpaquePointer

      /// Creates a key from the numbers of RSA without leading zeros; `nil` if it is none.
      convenience init?(rsaModulus modulus: [UInt8], exponent: [UInt8]) {
        // 1.2.840.113549.1.1.1
        let algorithm = DER.sequence(
          DER.identifier([0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]), DER.null)
        let numbers = DER.sequence(DER.integer(modulus), DER.integer(exponent))
        self.init(DER.sequence(algorithm, DER.bitString(numbers)))
      }

      /// Creates a key from the 64 bytes of a point's coordinates; `nil` if it is not on the curve.
      convenience init?(p256 point: [UInt8]) {
        // 1.2.840.10045.2.1 and 1.2.840.10045.3.1.7
        let algorithm = DER.sequence(
          DER.identifier([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]),
          DER.identifier([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]))
        self.init(DER.sequence(algorithm, DER.bitString([4] + point)))
      }

      /// Reads a SubjectPublicKeyInfo (RFC 5280 §4.1.2.7).
      private init?(_ der: [UInt8]) {
        OpenSSL.prepare()
        let key = der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
          var start = bytes.baseAddress
          return d2i_PUBKEY(nil, &start, bytes.count)
        }
        guard let key else {
          ERR_clear_error()
          return nil
        }
        self.key = key
      }

      deinit { EVP_PKEY_free(key) }

      /// Returns `true` if a signature is the message's: as RSA has it, or the 64 bytes of ECDSA's
      /// numbers.
      func isValid(
        _ signature: [UInt8], for message: [UInt8], scheme: VerificationKey.Scheme
      ) -> Bool {
        let encoded =
          scheme == .rsa
          ? signature
          : DER.sequence(DER.integer(signature.prefix(32)), DER.integer(signature.suffix(32)))
        let context = EVP_MD_CTX_new()
        defer {
          EVP_MD_CTX_free(context)
          ERR_clear_error()
        }
        return EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1
          && EVP_DigestVerify(context, encoded, encoded.count, message, message.count) == 1
      }
    }
  }
#endif
