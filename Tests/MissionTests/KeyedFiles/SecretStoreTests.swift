import FerryMissions
import FerryTestSupport
import Foundation
import Testing

@Suite("Secrets of an app", .hangLimit)
struct SecretStoreTests {
  private let directory: TemporaryDirectory
  private let folder: String

  init() throws {
    directory = try TemporaryDirectory(prefix: "ferry-secrets")
    folder = directory.file("secrets").path
  }

  @Test(
    "a secret is stored, replaced and removed, and only its owner can read it",
    arguments: [true, false])
  func roundTrip(isSealed: Bool) async throws {
    let key = isSealed ? [UInt8](repeating: 7, count: 32) : nil
    let secrets = try await FileSecretStore.open(folder, key: key)
    #expect(try await secrets.secret("mail") == nil)
    try await secrets.set(Array("first".utf8), for: "mail")
    try await secrets.set(Array("the quick brown fox".utf8), for: "mail")
    try await secrets.set([], for: "empty")
    let again = try await FileSecretStore.open(folder, key: key)
    #expect(try await again.secret("mail") == Array("the quick brown fox".utf8))
    #expect(try await again.secret("empty") == [])
    for path in [""] + (try FileManager.default.subpathsOfDirectory(atPath: folder)) {
      let place = folder + "/" + path
      let mode = try FileManager.default.attributesOfItem(atPath: place)[.posixPermissions] as? Int
      #expect(try #require(mode) & 0o077 == 0, "\(path)")
      let bytes = FileManager.default.contents(atPath: place) ?? Data()
      if isSealed { #expect(bytes.firstRange(of: Data("quick brown".utf8)) == nil, "\(path)") }
    }
    try await again.set(nil, for: "mail")
    try await again.set(nil, for: "mail")
    #expect(try await again.secret("mail") == nil)
  }

  @Test("names and secrets that are too long are refused, and nothing changes")
  func limits() async throws {
    let secrets = try await FileSecretStore.open(folder)
    func kind(_ bytes: [UInt8], _ name: String) async -> FileStoreError.Kind? {
      do throws(FileStoreError) {
        try await secrets.set(bytes, for: name)
        return nil
      } catch {
        return error.kind
      }
    }
    let longest = String(repeating: "n", count: 256)
    #expect(await kind([UInt8](repeating: 1, count: 64 << 10), longest) == nil)
    #expect(await kind([UInt8](repeating: 1, count: (64 << 10) + 1), "a") == .limitReached)
    #expect(await kind([1], longest + "n") == .badKey)
    #expect(await kind([1], "") == .badKey)
    #expect(await kind([1], String(repeating: "e\u{301}", count: 86)) == .badKey)
    #expect(try await secrets.secret("a") == nil)
  }
}
