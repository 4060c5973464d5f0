#if canImport(Security)
  import Foundation
  import Security

  /// Stores secrets in the key chain of an Apple system, readable after the first unlock of this
  /// device and in no backup for another one.
  public struct KeychainSecretStore: SecretStore {
    private let service: String

    /// - Parameter service: the app's name among those of other apps, such as the bundle
    ///   identifier.
    public init(service: String) { self.service = service }

    public func secret(_ name: String) async throws(FileStoreError) -> [UInt8]? {
      try SecretLimits.check(name)
      var query = item(name)
      query[kSecReturnData] = true
      query[kSecMatchLimit] = kSecMatchLimitOne
      var found: CFTypeRef?
      let status = SecItemCopyMatching(query as CFDictionary, &found)
      if status == errSecItemNotFound { return nil }
      guard status == errSecSuccess, let data = found as? Data else { throw failure(status) }
      return [UInt8](data)
    }

    public func set(_ secret: [UInt8]?, for name: String) async throws(FileStoreError) {
      try SecretLimits.check(name, secret)
      guard let secret else {
        let status = SecItemDelete(item(name) as CFDictionary)
        guard status == errSecSuccess || status == errSecItemNotFound else { throw failure(status) }
        return
      }
      let values: [CFString: Any] = [
        kSecValueData: Data(secret),
        kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
      ]
      var status = SecItemUpdate(item(name) as CFDictionary, values as CFDictionary)
      if status == errSecItemNotFound {
        let new = item(name).merging(values) { _, value in value }
        status = SecItemAdd(new as CFDictionary, nil)
      }
      guard status == errSecSuccess else { throw failure(status) }
    }

    private func item(_ name: String) -> [CFString: Any] {
      [
        kSecClass: kSecClassGenericPassword, kSecAttrService: service, kSecAttrAccount: name,
        kSecUseDataProtectionKeychain: true,
      ]
    }

    private func failure(_ status: OSStatus) -> FileStoreError {
      let text = SecCopyErrorMessageString(status, nil) as String? ?? "status \(status)"
      return FileStoreError(.files, "the key chain refuses the secret: \(text)")
    }
  }
#endif
