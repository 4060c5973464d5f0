import CFerryOpenSSL

/// Codes of RFC 2104 with SHA-256, which only holders of the key can make and check.
package enum HMACSHA256 {
  /// Returns the 32 bytes of the code.
  package static func code(for message: [UInt8], key: [UInt8]) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 0
    let result = HMAC(
      EVP_sha256(), key, Int32(key.count), message, message.count, &code, &count)
    precondition(result != nil && count == 32, "OpenSSL has no HMAC")
    return code
  }

  /// Returns whether this is the message's code. Takes the same time for each wrong one.
  package static func isValid(_ code: [UInt8], for message: [UInt8], key: [UInt8]) -> Bool {
    let right = self.code(for: message, key: key)
    return code.count == right.count && CRYPTO_memcmp(code, right, right.count) == 0
  }
}
