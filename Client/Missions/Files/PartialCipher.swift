import FerryCryptography
import FerryProtocol

/// Encrypts content during a download, if content is encrypted at rest: in place, byte by byte
/// (AES-256-CTR). So a download can resume at any byte.
///
/// Each content has a separate key. Hashes prove the bytes before any of them is used; then the
/// complete content is sealed (AES-256-GCM). Wrong bytes and their replacements have the same key
/// stream: a reader of both states of the disk learns where they differ.
public struct PartialCipher: Sendable, Equatable {
  private let cipher: AESCTR

  /// Creates a cipher; `nil` unless the key has 32 bytes.
  public init?(key: [UInt8], content hash: ContentHash) {
    let own = SHA256.digest(of: Array("ferry partial 1\n".utf8) + key + hash.bytes)
    guard key.count == AESCTR.keyBytes, let cipher = try? AESCTR(key: own) else { return nil }
    self.cipher = cipher
  }

  /// Returns the file's bytes for these bytes of the content, or the reverse, at an offset in
  /// bytes.
  public func applied(to bytes: [UInt8], at offset: Int64) -> [UInt8] {
    cipher.applied(to: bytes, at: offset)
  }
}

extension PartialCipher? {
  /// Returns the converted bytes; without a cipher, the same bytes.
  func applied(to bytes: [UInt8], at offset: Int64) -> [UInt8] {
    self?.applied(to: bytes, at: offset) ?? bytes
  }
}
