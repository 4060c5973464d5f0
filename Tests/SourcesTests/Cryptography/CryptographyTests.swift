import FerryCryptography
import FerryTestSupport
import Testing

@Suite("Cryptography", .hangLimit)
struct CryptographyTests {
  private func hex(_ text: String) -> [UInt8] {
    let digits = Array(text.utf8).map { $0 < 0x3A ? $0 - 0x30 : $0 - 0x57 }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  @Test("SHA-256 of the standard's example is the standard's digest, whole or in parts")
  func digest() {
    let expected = hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(SHA256.digest(of: "abc") == expected)
    var parts = SHA256()
    parts.update([0x61])
    parts.update([])
    parts.update([0x62, 0x63])
    #expect(parts.finish() == expected)
  }

  @Test("Ed25519 returns the key and the signature of RFC 8032 §7.1, test 2")
  func signature() throws {
    let key = try Ed25519.SecretKey(
      hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"))
    let publicKey = key.publicKey
    #expect(
      publicKey.bytes == hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"))
    let signature = key.sign([0x72])
    #expect(
      signature
        == hex(
          "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            + "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"))
    #expect(publicKey.isValid(signature, for: [0x72]))
    #expect(!publicKey.isValid(signature, for: [0x73]))
    #expect(!publicKey.isValid(Array(signature.dropLast()), for: [0x72]))
    #expect(!Ed25519.SecretKey().publicKey.isValid(signature, for: [0x72]))
  }

  @Test("bytes are written as two lower-case digits each")
  func hexadecimal() {
    #expect(Hexadecimal.text([0x00, 0x0F, 0xA0, 0xFF]) == "000fa0ff")
    #expect(Hexadecimal.text([]) == "")
  }

  @Test("a key of another length is refused")
  func keyLength() {
    #expect(throws: CryptographyError.invalidKey) { try Ed25519.SecretKey([1]) }
    #expect(throws: CryptographyError.invalidKey) { try Ed25519.PublicKey([]) }
    #expect(throws: CryptographyError.invalidKey) { try AESGCM(key: [1, 2, 3]) }
  }

  @Test("AES-256-GCM returns the ciphertext and tag of the specification's test case 14")
  func knownCiphertext() throws {
    let cipher = try AESGCM(key: [UInt8](repeating: 0, count: 32))
    let nonce = [UInt8](repeating: 0, count: 12)
    let zeros = [UInt8](repeating: 0, count: 16)
    let sealed = cipher.seal(zeros, nonce: nonce)
    #expect(
      sealed == hex("cea7403d4d606b6e074ec5d3baf39d18" + "d0d1c8a799996bf0265b98b5d48ab919"))
    #expect(try cipher.open(sealed, nonce: nonce) == zeros)
  }

  @Test("bytes that were changed, moved or encrypted with another key are refused")
  func alteration() throws {
    let cipher = try AESGCM(key: SecureRandom.bytes(32))
    let nonce = SecureRandom.bytes(12)
    for content in [[], [7], SecureRandom.bytes(5_000)] as [[UInt8]] {
      let sealed = cipher.seal(content, nonce: nonce, context: [1])
      #expect(sealed.count == content.count + AESGCM.tagBytes)
      #expect(try cipher.open(sealed, nonce: nonce, context: [1]) == content)
      var altered = sealed
      altered[sealed.count / 2] ^= 1
      let other = try AESGCM(key: SecureRandom.bytes(32))
      #expect(throws: CryptographyError.notAuthentic) {
        try cipher.open(altered, nonce: nonce, context: [1])
      }
      #expect(throws: CryptographyError.notAuthentic) {
        try cipher.open(sealed, nonce: nonce, context: [2])
      }
      #expect(throws: CryptographyError.notAuthentic) {
        try other.open(sealed, nonce: nonce, context: [1])
      }
      #expect(throws: CryptographyError.notAuthentic) {
        try cipher.open(Array(sealed.prefix(15)), nonce: nonce, context: [1])
      }
    }
  }
}
