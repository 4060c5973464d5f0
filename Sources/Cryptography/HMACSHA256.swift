/// Codes of RFC 2104 with SHA-256, which only holders of the key can make and check.
package enum HMACSHA256 {
  /// Returns the 32 bytes of the code.
  package static func code(for message: [UInt8], key: [UInt8]) -> [UInt8] {
    Algorithms.hmac(of: message, key: key)
  }

  /// Returns whether this is the message's code. Takes the same time for each wrong one.
  package static func isValid(_ code: [UInt8], for message: [UInt8], key: [UInt8]) -> Bool {
    let right = self.code(for: message, key: key)
    guard code.count == right.count else { return false }
    return zip(code, right).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }
}
