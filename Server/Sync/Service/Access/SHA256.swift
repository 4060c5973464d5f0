import COpenSSL

/// SHA-256 (FIPS 180-4) by OpenSSL.
enum SHA256 {
  /// The 32 bytes of the digest.
  static func digest(of text: some StringProtocol) -> [UInt8] {
    let input = Array(text.utf8)
    var digest = [UInt8](repeating: 0, count: 32)
    let status = EVP_Digest(input, input.count, &digest, nil, EVP_sha256(), nil)
    precondition(status == 1, "OpenSSL has no SHA-256")
    return digest
  }
}
