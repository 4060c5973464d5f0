import FerryCryptography
import FerryProtocol

/// A public key; its holder may patch the app. `ferryd patch key` prints it.
///
/// ```swift
/// guard let key = PatchKey("TvMHBVkyYnXdtW75Lm3r2j8GglSSuFhE/aJnHTRkRp8=") else { return }
/// ```
public struct PatchKey: Sendable, Hashable, CustomStringConvertible {
  let key: Ed25519.PublicKey

  /// Reads 32 bytes in base64; `nil` for anything else.
  public init?(_ base64: String) {
    let bytes = Array(base64.utf8).withUnsafeBufferPointer { Base64.decode($0) }
    guard let bytes else { return nil }
    self.init(bytes)
  }

  /// Creates a key from 32 bytes; `nil` for another number.
  public init?(_ bytes: [UInt8]) {
    guard let key = try? Ed25519.PublicKey(bytes) else { return nil }
    self.key = key
  }

  public var description: String {
    var text: [UInt8] = []
    key.bytes.withUnsafeBytes { Base64.append($0, to: &text) }
    return String(decoding: text, as: UTF8.self)
  }
}
