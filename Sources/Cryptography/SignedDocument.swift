/// A document with a signature: a JSON Web Signature in compact form (RFC 7515 §3.1) by Ed25519
/// (RFC 8037).
///
/// The header is always `{"alg":"EdDSA","typ":"…"}`, byte for byte. A reader thus never follows a
/// header: neither another algorithm nor a key named by the document itself.
package struct SignedDocument: Sendable, Equatable {
  /// The content, which nothing but ``isSigned(by:type:)`` vouches for.
  package let payload: [UInt8]
  private let header: [UInt8]
  private let signature: [UInt8]
  /// The signed bytes: header and payload in base64url, with a dot between them.
  private let message: [UInt8]

  /// Splits a document; `nil` if it is no compact signature. It checks no signature.
  package init?(_ text: [UInt8]) {
    let parts = text.split(separator: 0x2E, omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Base64URL.decode(parts[0]),
      let payload = Base64URL.decode(parts[1]), let signature = Base64URL.decode(parts[2])
    else { return nil }
    self.payload = payload
    self.header = header
    self.signature = signature
    message = Array(text[..<(parts[2].startIndex - 1)])
  }

  /// Returns whether the holder of this key signed exactly this content, as a document of this
  /// type.
  package func isSigned(by key: Ed25519.PublicKey, type: String) -> Bool {
    header == Self.header(type) && key.isValid(signature, for: message)
  }

  /// Returns a signed document as text.
  ///
  /// - Parameter type: names the kind of document, so no signature counts for another kind;
  ///   letters, digits and `-`.
  package static func sign(
    _ payload: [UInt8], type: String, with key: Ed25519.SecretKey
  ) -> String {
    let message = Base64URL.encode(header(type)) + "." + Base64URL.encode(payload)
    return message + "." + Base64URL.encode(key.sign(Array(message.utf8)))
  }

  private static func header(_ type: String) -> [UInt8] {
    Array(#"{"alg":"EdDSA","typ":"\#(type)"}"#.utf8)
  }
}
