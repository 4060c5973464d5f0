import FerryCryptography
import FerryTestSupport
import Testing

@Suite("Signatures of JSON Web Tokens", .hangLimit)
struct SignatureVectorTests {
  private func bytes(_ text: String) throws -> [UInt8] {
    try #require(Base64URL.decode(text.utf8))
  }

  @Test("HMAC-SHA-256 equals RFC 4231 §4.2 and §4.7, and refuses every other code")
  func hmac() {
    let key = [UInt8](repeating: 0x0B, count: 20)
    let code = HMACSHA256.code(for: Array("Hi There".utf8), key: key)
    #expect(
      Hexadecimal.text(code) == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
    let long = [UInt8](repeating: 0xAA, count: 131)
    let text = Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8)
    #expect(
      Hexadecimal.text(HMACSHA256.code(for: text, key: long))
        == "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
    #expect(HMACSHA256.isValid(code, for: Array("Hi There".utf8), key: key))
    for index in code.indices {
      var wrong = code
      wrong[index] ^= 1
      #expect(!HMACSHA256.isValid(wrong, for: Array("Hi There".utf8), key: key))
    }
    #expect(!HMACSHA256.isValid([], for: Array("Hi There".utf8), key: key))
    #expect(!HMACSHA256.isValid(code + [0], for: Array("Hi There".utf8), key: key))
  }

  @Test("a signature of P-256 equals RFC 7515 appendix A.3")
  func p256() throws {
    let key = try VerificationKey(
      p256: bytes("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"),
      bytes("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"))
    let message = Array(
      ("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt"
        + "cGxlLmNvbS9pc19yb290Ijp0cnVlfQ").utf8)
    let signature = try bytes(
      "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q")
    #expect(key.isValid(signature, for: message))
    #expect(!key.isValid(signature, for: message + [0]))
    for index in stride(from: 0, to: 64, by: 7) {
      var wrong = signature
      wrong[index] ^= 0x10
      #expect(!key.isValid(wrong, for: message))
    }
    #expect(!key.isValid([], for: message))
    #expect(!key.isValid([UInt8](repeating: 0, count: 64), for: message))
    #expect(!key.isValid(Array(signature.dropLast()), for: message))
    #expect(throws: CryptographyError.invalidKey) {
      try VerificationKey(p256: [UInt8](repeating: 1, count: 32), [UInt8](repeating: 1, count: 32))
    }
  }

  @Test("a coordinate of P-256 is a number with any leading zeros")
  func coordinates() throws {
    let x = try bytes("Zg9BMyr2H2jCiV_zeRltOdSkyY5HltgDUngK85rjOw")
    let y = try bytes("RB4ovqaZPYDNVVe6Aa4erCpC3X-Kjmu5Hklr26i-Cv0")
    let signature = try bytes(
      "mf-kIFMrh6_tDrR2p7zwDXwttfPypaAFbUQ6SIu72uuKT446ihfGA4RcbCP_q90uhlFExobs3jOMhr1hdyLjTA")
    let message = Array("A key of Glewlwyd 2.7.5".utf8)
    #expect(x.count == 31 && y.count == 32)
    for zeros in [0, 1, 2, 9] {
      let padding = [UInt8](repeating: 0, count: zeros)
      let key = try VerificationKey(p256: padding + x, padding + y)
      #expect(key.isValid(signature, for: message), "\(zeros)")
      #expect(!key.isValid(signature, for: message + [0]), "\(zeros)")
    }
    for (wrongX, wrongY) in [(x + [0], y), (x, y + [0]), ([1] + x, y), ([1, 0] + x, y), ([], y)] {
      #expect(throws: CryptographyError.invalidKey) { try VerificationKey(p256: wrongX, wrongY) }
    }
  }

  @Test("RSA keys that are short, even or without an exponent are refused")
  func weakRSA() throws {
    let odd = [UInt8](repeating: 0xFF, count: 256)
    _ = try VerificationKey(rsaModulus: odd, exponent: [1, 0, 1])
    let weak: [([UInt8], [UInt8])] = [
      ([], [1, 0, 1]), (Array(odd.dropLast()), [1, 0, 1]), ([0x7F] + odd.dropLast(), [1, 0, 1]),
      (odd, []), (odd, [1]), (odd, [2]), (odd, [0, 0, 1]), (odd, Array(repeating: 3, count: 9)),
      (Array(repeating: 0xFF, count: 1_025), [1, 0, 1]),
    ]
    for (modulus, exponent) in weak {
      #expect(throws: CryptographyError.invalidKey) {
        try VerificationKey(rsaModulus: modulus, exponent: exponent)
      }
    }
  }

  @Test("base64url has one form for each sequence of bytes")
  func base64url() {
    for count in 0..<70 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ count) }
      let text = Base64URL.encode(bytes)
      #expect(Base64URL.decode(text.utf8) == bytes)
      #expect(!text.contains("=") && !text.contains("+") && !text.contains("/"))
    }
    for text in ["A", "AB", "AAB", "AA=", "AA==", "A+", "A/", "A A", "AAAAA", "é"] {
      #expect(Base64URL.decode(text.utf8) == nil, "\(text)")
    }
    #expect(Base64URL.decode("AA".utf8) == [0] && Base64URL.decode("AAA".utf8) == [0, 0])
  }
}
