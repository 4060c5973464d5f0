import FerryCryptography
import FerryProtocol

/// The names of keys on disk and, with a key for encryption, the ciphers of a store.
///
/// The name of a key is its SHA-256. With encryption it is an HMAC, so a reader of the folder
/// cannot try addresses. Then the index has the keys and hashes of contents in encrypted form, too.
struct FileKeys: Sendable {
  /// The most bytes of a key's UTF-8.
  static let bytesMax = 8 << 10
  /// The bytes of a version's random identifier.
  static let idBytes = 16

  private struct Secrets: Sendable {
    let names: [UInt8]
    let index: AESGCM
    let content: AESGCM
  }

  private let secrets: Secrets?

  /// - Throws: ``FileStoreError/Kind/wrongKey`` for a key without 32 bytes.
  init(key: [UInt8]?) throws(FileStoreError) {
    guard let key else {
      secrets = nil
      return
    }
    func derived(_ use: String) -> [UInt8] {
      HMACSHA256.code(for: Array("ferry file store 1 \(use)".utf8), key: key)
    }
    // Other uses of the caller's key, such as missions, get other keys.
    guard key.count == AESGCM.keyBytes, let index = try? AESGCM(key: derived("index")),
      let content = try? AESGCM(key: derived("content"))
    else {
      throw FileStoreError(.wrongKey, "a key for encryption has \(AESGCM.keyBytes) bytes")
    }
    secrets = Secrets(names: derived("names"), index: index, content: content)
  }

  /// True if files are encrypted.
  var isSealed: Bool { secrets != nil }

  var proof: SealProof { SealProof(cipher: secrets?.index, of: "ferry file store") }

  /// Returns the name of a key's file.
  func name(of key: String) -> ContentHash {
    let bytes = Array(key.utf8)
    let code = secrets.map { HMACSHA256.code(for: bytes, key: $0.names) }
    guard let name = ContentHash(code ?? SHA256.digest(of: bytes)) else {
      preconditionFailure("a digest has 32 bytes")
    }
    return name
  }

  /// Returns the end of the name of a key's file. An encrypted file has none: it would reveal a
  /// part of the key, and no program can read the file by type.
  func suffix(of key: String) -> String { isSealed ? "" : FileSuffix.of(key) }

  /// Throws unless a file may have this key.
  static func check(_ key: String) throws(FileStoreError) {
    guard (1...bytesMax).contains(key.utf8.count) else {
      throw FileStoreError(
        .badKey, "a key has 1 to \(bytesMax) bytes, and this one has \(key.utf8.count)")
    }
  }

  /// Returns the format of an encrypted version; `nil` without encryption. Each version has a
  /// separate identifier, so neither another key's file nor an earlier version passes for it.
  func sealed(_ name: ContentHash, id: [UInt8], size: Int64) -> SealedFile? {
    guard let cipher = secrets?.content else { return nil }
    let identity = SHA256.digest(of: Array("ferry file 1\n".utf8) + name.bytes + id)
    return SealedFile(cipher: cipher, identity: identity, size: size)
  }

  /// Returns the size of a version's file.
  func bytesOnDisk(_ name: ContentHash, id: [UInt8], size: Int64) -> Int64 {
    sealed(name, id: id, size: size)?.fileSize ?? size
  }

  // MARK: The index

  /// Returns the key and the hash of a content as the index has them.
  func encoded(
    key: String, hash: ContentHash, name: ContentHash, id: [UInt8], size: Int64
  ) -> [UInt8] {
    let facts = hash.bytes + Array(key.utf8)
    guard let cipher = secrets?.index else { return facts }
    let nonce = SecureRandom.bytes(AESGCM.nonceBytes)
    return nonce + cipher.seal(facts, nonce: nonce, context: Self.context(name, id, size))
  }

  /// Returns the key and the hash; throws if the index was altered.
  func decoded(
    _ bytes: [UInt8], name: ContentHash, id: [UInt8], size: Int64
  ) throws(FileStoreError) -> (key: String, hash: ContentHash) {
    var facts: [UInt8]? = bytes
    if let cipher = secrets?.index {
      let nonce = Array(bytes.prefix(AESGCM.nonceBytes))
      facts = try? cipher.open(
        Array(bytes.dropFirst(AESGCM.nonceBytes)), nonce: nonce,
        context: Self.context(name, id, size))
    }
    guard let facts, let hash = ContentHash(facts.prefix(ContentHash.byteCount)),
      let key = String(validating: facts.dropFirst(ContentHash.byteCount), as: UTF8.self),
      self.name(of: key) == name
    else { throw FileStoreError(.damaged, "the index was altered: the row of \(name)") }
    return (key, hash)
  }

  private static func context(_ name: ContentHash, _ id: [UInt8], _ size: Int64) -> [UInt8] {
    name.bytes + id + withUnsafeBytes(of: size.bigEndian) { Array($0) }
  }
}
