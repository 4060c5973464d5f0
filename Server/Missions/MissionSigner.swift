import FerryCryptography
import FerryPlatform
import FerryProtocol
import Foundation

/// The reason why there is no key to sign with.
package enum SigningKeyError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The file holds something else than one Ed25519 key as PKCS #8 in PEM.
  case notAKey(path: String)
  /// Every user of the machine may read the key.
  case notPrivate(path: String)
  /// The file can neither be read nor made.
  case file(BlobError)
  /// There is no file, and missions were signed with a key (in base64) that is nowhere else.
  case missing(path: String, signer: String)
  /// The file holds another key than the signing key (in base64) of the published missions.
  case other(path: String, signer: String)

  package var description: String {
    switch self {
    case .notAKey(let path): "\(path) contains no Ed25519 key (PEM, PKCS #8)"
    case .notPrivate(let path): "all users of this machine may read the key in \(path)"
    case .file(let error): error.description
    case .missing(let path, let signer):
      "the key \(signer) signed the published missions, and \(path) does not exist"
    case .other(let path, let signer):
      "the key \(signer) signed the published missions, and \(path) contains another key"
    }
  }
}

/// A signer of manifests, with a key in a file: `openssl genpkey -algorithm ed25519` makes such a
/// file, too. The key is made when it is first needed.
package struct MissionSigner: Sendable, Equatable {
  private let key: Ed25519.SecretKey

  /// Creates a signer with a known key.
  package init(_ key: Ed25519.SecretKey) { self.key = key }

  /// Creates a signer with the 32 bytes of a key; throws ``CryptographyError/invalidKey`` for other
  /// lengths.
  package init(secret: [UInt8]) throws(CryptographyError) {
    self.init(try Ed25519.SecretKey(secret))
  }

  /// Reads the key, or makes one if the file is absent. If several processes do so at once, one
  /// makes it, and all have the same. It blocks.
  package init(file path: String) throws(SigningKeyError) {
    if let key = try Self.read(path) {
      self.key = key
      return
    }
    try Self.make(path)
    guard let key = try Self.read(path) else { throw .file(BlobError(path, code: ENOENT)) }
    self.key = key
  }

  /// Reads the key; `nil` if there is no file. It blocks.
  package static func existing(file path: String) throws(SigningKeyError) -> MissionSigner? {
    try read(path).map { MissionSigner($0) }
  }

  /// The key to check signatures, 32 bytes.
  package var publicKey: [UInt8] { key.publicKey.bytes }

  /// Returns the signature over a manifest's document, for the catalogue record.
  package func sign(_ document: [UInt8]) -> [UInt8] {
    key.sign(MissionManifest.signedMessage(document))
  }

  /// Returns a document of another type with a signature: no signature of a manifest is valid for
  /// such a document, and the reverse.
  package func sign(_ payload: [UInt8], type: String) -> String {
    SignedDocument.sign(payload, type: type, with: key)
  }

  // MARK: The file

  /// Reads the key's file; `nil` if there is no file.
  private static func read(_ path: String) throws(SigningKeyError) -> Ed25519.SecretKey? {
    let (text, mode): ([UInt8], mode_t)
    do {
      let file = try BlobFile(path, O_RDONLY)
      (text, mode) = (try file.bytes(4_096), try file.status().st_mode)
    } catch .system(_, ENOENT) {
      return nil
    } catch {
      throw .file(error)
    }
    guard mode & 0o007 == 0 else { throw .notPrivate(path: path) }
    guard let key = PrivateKeyPEM.decode(text) else { throw .notAKey(path: path) }
    return key
  }

  private static func make(_ path: String) throws(SigningKeyError) {
    let draft = "\(path).\(getpid())-\(BlobDirectory.randomName())"
    defer { unlink(draft) }
    do {
      let file = try BlobFile(draft, O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
      try file.write(PrivateKeyPEM.encode(Ed25519.SecretKey()), at: 0)
      try file.sync()
    } catch {
      throw .file(error)
    }
    // A link never replaces a key made meanwhile by another process.
    guard link(draft, path) == 0 || errno == EEXIST else {
      throw .file(BlobError(path, code: errno))
    }
  }
}

/// A secret Ed25519 key as text: PKCS #8 (RFC 8410 §7) in PEM (RFC 7468 §10).
enum PrivateKeyPEM {
  private static let begin = "-----BEGIN PRIVATE KEY-----"
  private static let end = "-----END PRIVATE KEY-----"
  /// The bytes before the key's 32 bytes: version 0, id-Ed25519, and two octet strings' heads.
  private static let head: [UInt8] = [
    0x30, 0x2E, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
  ]

  static func encode(_ key: Ed25519.SecretKey) -> [UInt8] {
    var text = Array("\(begin)\n".utf8)
    (head + key.bytes).withUnsafeBytes { Base64.append($0, to: &text) }
    return text + Array("\n\(end)\n".utf8)
  }

  /// Reads a key; `nil` for anything but one such key; text around it is passed over.
  static func decode(_ bytes: [UInt8]) -> Ed25519.SecretKey? {
    let text = String(decoding: bytes, as: UTF8.self)
    let parts = text.parts(between: begin)
    guard parts.count == 2, let stop = parts[1].utf8.firstRange(of: end.utf8) else { return nil }
    let body = Array(parts[1][..<stop.lowerBound].utf8.filter { $0 > 0x20 })
    guard let der = body.withUnsafeBufferPointer({ Base64.decode($0) }),
      der.count == head.count + Ed25519.keyBytes, der.starts(with: head)
    else { return nil }
    return try? Ed25519.SecretKey(Array(der.dropFirst(head.count)))
  }
}
