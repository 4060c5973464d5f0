/// SHA-256 (FIPS 180-4) of content in parts.
package struct SHA256: ~Copyable {
  private var state = Algorithms.Digest()

  /// Begins the digest of empty content.
  package init() {}

  /// Adds the next part of the content.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) { state.update(bytes) }

  /// Adds the next part of the content.
  package mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

  /// Returns the 32 bytes of the digest of all added content.
  package consuming func finish() -> [UInt8] { state.finish() }

  /// Returns the 32 bytes of the digest.
  package static func digest(of bytes: UnsafeRawBufferPointer) -> [UInt8] {
    Algorithms.digest(of: bytes)
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
