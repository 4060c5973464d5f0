import CFerryOpenSSL

/// SHA-256 (FIPS 180-4) by OpenSSL, of content that comes in parts.
package struct SHA256: ~Copyable {
  private let context: OpaquePointer

  /// Begins the digest of empty content.
  package init() {
    guard let context = EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
    self.context = context
    let status = EVP_DigestInit_ex(context, EVP_sha256(), nil)
    precondition(status == 1, "OpenSSL has no SHA-256")
  }

  deinit { EVP_MD_CTX_free(context) }

  /// Adds the next part of the content.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    let status = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
    precondition(status == 1, "OpenSSL could not go on with SHA-256")
  }

  /// Adds the next part of the content.
  package mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

  /// Returns the 32 bytes of the digest of all added content.
  package consuming func finish() -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    let status = EVP_DigestFinal_ex(context, &digest, nil)
    precondition(status == 1, "OpenSSL could not end SHA-256")
    return digest
  }

  /// Returns the 32 bytes of the digest.
  package static func digest(of bytes: UnsafeRawBufferPointer) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    let status = EVP_Digest(bytes.baseAddress, bytes.count, &digest, nil, EVP_sha256(), nil)
    precondition(status == 1, "OpenSSL has no SHA-256")
    return digest
  }

  /// Returns the 32 bytes of the digest.
  package static func digest(of bytes: [UInt8]) -> [UInt8] {
    bytes.withUnsafeBytes { digest(of: $0) }
  }

  /// Returns the 32 bytes of the digest of a text's UTF-8.
  package static func digest(of text: some StringProtocol) -> [UInt8] {
    digest(of: Array(text.utf8))
  }
}
