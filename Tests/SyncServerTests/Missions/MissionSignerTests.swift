import FerryCryptography
import FerryProtocol
import FerryTestSupport
import Foundation
import Testing

@testable import FerryMissionServer

@Suite("The key that signs missions", .hangLimit)
struct MissionSignerTests {
  @Test("the key is created once, for its user only, and devices verify its signatures")
  func makes() throws {
    let folder = try TemporaryDirectory()
    let path = folder.file("key.pem").path
    let signer = try MissionSigner(file: path)
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    #expect(try MissionSigner(file: path) == signer)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == ["key.pem"])
    let document = Array("{}".utf8)
    let key = try Ed25519.PublicKey(signer.publicKey)
    #expect(
      key.isValid(signer.sign(document), for: MissionManifest.signedMessage(document)))
    #expect(!key.isValid(signer.sign(document), for: document))
  }

  @Test("concurrent creators of the key all get the same key")
  func together() async throws {
    let folder = try TemporaryDirectory()
    let path = folder.file("key.pem").path
    let threads = try BlobThreads(BlobDirectory(folder.file("blobs").path), threads: 8)
    let keys = try await withThrowingTaskGroup(of: [UInt8].self) { group in
      for _ in 0..<24 {
        group.addTask {
          try await threads.run { (_, _) throws(BlobError) in
            Result { () throws(SigningKeyError) in try MissionSigner(file: path).publicKey }
          }.get()
        }
      }
      return try await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
    }
    #expect(keys.count == 1)
  }

  @Test("a key made by OpenSSL is read")
  func openSSL() throws {
    let folder = try TemporaryDirectory()
    let path = folder.file("key.pem").path
    // RFC 8410 §10.3.
    let pem = """
      -----BEGIN PRIVATE KEY-----
      MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
      -----END PRIVATE KEY-----

      """
    try Data(pem.utf8).write(to: URL(filePath: path))
    #expect(chmod(path, 0o600) == 0)
    let signer = try MissionSigner(file: path)
    // As `openssl pkey -pubout` prints, and RFC 8410 §10.1.
    #expect(
      ContentHash(signer.publicKey)?.description
        == "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1")
  }

  @Test("an invalid key, and a key that other users can read, are refused")
  func refuses() throws {
    let folder = try TemporaryDirectory()
    let path = folder.file("key.pem").path
    let secret = PrivateKeyPEM.encode(Ed25519.SecretKey())
    for text in ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
      try Data(text.utf8).write(to: URL(filePath: path))
      #expect(chmod(path, 0o600) == 0)
      #expect(throws: SigningKeyError.notAKey(path: path)) { _ = try MissionSigner(file: path) }
    }
    try Data(secret).write(to: URL(filePath: path))
    #expect(chmod(path, 0o644) == 0)
    #expect(throws: SigningKeyError.notPrivate(path: path)) { _ = try MissionSigner(file: path) }
    let nowhere = folder.file("none/key.pem").path
    #expect(throws: SigningKeyError.self) { _ = try MissionSigner(file: nowhere) }
  }
}
