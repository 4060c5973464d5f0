import FerryCryptography

/// A proof that a folder's files are encrypted with a key, or with none. It is stored beside them.
package struct SealProof: Sendable {
  private let cipher: AESGCM?
  private let text: [UInt8]

  /// - Parameter text: names the kind of store.
  package init(cipher: AESGCM?, of text: String) {
    self.cipher = cipher
    self.text = Array(text.utf8)
  }

  /// Returns a new proof of the present key.
  package func make() -> [UInt8] {
    guard let cipher else { return [0] }
    let nonce = SecureRandom.bytes(AESGCM.nonceBytes)
    return nonce + cipher.seal(text, nonce: nonce)
  }

  /// Returns true if a proof was made with the present key, or without a key if there is none.
  package func accepts(_ proof: [UInt8]) -> Bool {
    guard let cipher else { return proof == [0] }
    guard proof.count > AESGCM.nonceBytes else { return false }
    let sealed = Array(proof[AESGCM.nonceBytes...])
    return (try? cipher.open(sealed, nonce: Array(proof[..<AESGCM.nonceBytes]))) == text
  }
}
