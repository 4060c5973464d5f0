import Cryptography
import FerryProtocol

/// Encrypts content that is being fetched, where content is encrypted at rest: in its place, byte
/// by byte (AES-256-CTR), so that a download goes on at any byte, however it was interrupted.
///
/// Each content has a key of its own. Whether the bytes are right, their hashes tell, before any of
/// them is used; complete content is sealed then (AES-256-GCM). Bytes that were wrong and came
/// again were encrypted alike: who has seen the disk both times learns where they differ.
public struct PartialCipher: Sendable, Equatable {
  private let cipher: AESCTR

  /// `nil` unless the key has 32 bytes.
  init?(key: [UInt8], content hash: ContentHash) {
    let own = SHA256.digest(of: Array("ferry partial 1\n".utf8) + key + hash.bytes)
    guard key.count == AESCTR.keyBytes, let cipher = try? AESCTR(key: own) else { return nil }
    self.cipher = cipher
  }

  /// What stands in the file for these bytes of the content, or in the content for these of the
  /// file, at a place in bytes from the start.
  public func applied(to bytes: [UInt8], at offset: Int64) -> [UInt8] {
    cipher.applied(to: bytes, at: offset)
  }
}

extension PartialCipher? {
  /// The same; without a cipher bytes are what they are.
  func applied(to bytes: [UInt8], at offset: Int64) -> [UInt8] {
    self?.applied(to: bytes, at: offset) ?? bytes
  }
}
