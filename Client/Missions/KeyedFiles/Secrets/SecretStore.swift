/// Stores an app's secrets, such as passwords and tokens of other services, apart from the
/// database: a copy or a backup of the database contains none of them.
///
/// On Apple's systems use `KeychainSecretStore`, elsewhere ``FileSecretStore``.
public protocol SecretStore: Sendable {
  /// Returns a secret; `nil` if there is none.
  func secret(_ name: String) async throws(FileStoreError) -> [UInt8]?

  /// Stores a secret in place of the former one; `nil` removes it.
  func set(_ secret: [UInt8]?, for name: String) async throws(FileStoreError)
}

/// The limits of all stores of secrets.
enum SecretLimits {
  /// The most bytes of a name.
  static let nameBytesMax = 256
  /// The most bytes of a secret.
  static let secretBytesMax = 64 << 10

  /// Throws unless a secret may have this name and size.
  static func check(_ name: String, _ secret: [UInt8]? = nil) throws(FileStoreError) {
    guard (1...nameBytesMax).contains(name.utf8.count) else {
      throw FileStoreError(
        .badKey,
        "the name of a secret has 1 to \(nameBytesMax) bytes, and this one has \(name.utf8.count)")
    }
    let count = secret?.count ?? 0
    guard count <= secretBytesMax else {
      throw FileStoreError(
        .limitReached, "a secret has at most \(secretBytesMax) bytes, and this one has \(count)")
    }
  }
}

/// Stores secrets in files of a folder, readable only for the owner (mode 0600 from their
/// creation). With a key, the files and their names are encrypted.
///
/// ```swift
/// let secrets = try await FileSecretStore.open("/home/ada/.local/share/notes/secrets")
/// try await secrets.set(Array("s3cret".utf8), for: "mail password")
/// ```
public struct FileSecretStore: SecretStore {
  private let files: FileStore

  /// Opens the store in `folder`, and creates an absent one.
  ///
  /// - Parameter key: 32 bytes for encryption at rest, from a place outside of any copy of the
  ///   folder, such as the system's key store or the user's password; `nil` for none.
  public static func open(
    _ folder: String, key: [UInt8]? = nil
  ) async throws(FileStoreError) -> FileSecretStore {
    FileSecretStore(files: try await FileStore.open(folder, key: key))
  }

  public func secret(_ name: String) async throws(FileStoreError) -> [UInt8]? {
    try SecretLimits.check(name)
    do throws(FileStoreError) {
      return try await files.read(name)
    } catch {
      if error.kind == .notFound { return nil }
      throw error
    }
  }

  public func set(_ secret: [UInt8]?, for name: String) async throws(FileStoreError) {
    try SecretLimits.check(name, secret)
    guard let secret else {
      _ = try await files.remove(name)
      return
    }
    _ = try await files.put(secret, for: name)
  }
}
