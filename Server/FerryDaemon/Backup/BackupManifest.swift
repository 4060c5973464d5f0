import FerryCryptography
import FerryMissionServer
import FerryProtocol
import Foundation

/// The list of a backup's parts, in the backup's file `backup.json`. It is written last: a place
/// without it is no backup.
struct BackupManifest: Codable, Sendable, Equatable {
  /// A kind of store.
  enum Store: String, Codable, Sendable {
    /// A SQLite file.
    case embedded
    /// An archive of `pg_dump`.
    case postgres

    /// The store's file in the backup.
    var fileName: String { self == .embedded ? "store.sqlite" : "store.dump" }
  }

  /// A file with a hash.
  struct Part: Codable, Sendable, Equatable {
    /// Bytes.
    var size: Int64
    /// The SHA-256 in hexadecimal.
    var sha256: String
  }

  static let fileName = "backup.json"
  /// Bytes of this file, of which each part takes about 100.
  static let bytesMax = 256 << 20
  static let keyName = "mission-key.pem"
  static let formatNow = 1

  var format = BackupManifest.formatNow
  /// Ferry's version at the time of the backup.
  var ferry: String
  /// RFC 3339.
  var createdAt: String
  var store: Store
  var storeFile: Part
  /// The key that signs missions; `nil` if there was none.
  var missionKey: Part?
  /// The content of missions.
  var content: [Part]

  /// The content, by hash.
  var contentDigests: [FileDigest] {
    content.compactMap { part in
      ContentHash(part.sha256).map { FileDigest(size: part.size, hash: $0) }
    }
  }

  /// Returns the file `backup.json`.
  func encoded() throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(self)
  }

  /// Returns the SHA-256 of a file `backup.json`, in hexadecimal. As the file has the hashes of all
  /// parts, it is the checksum of the whole backup.
  static func checksum(of file: Data) -> String { Hexadecimal.text(SHA256.digest(of: Array(file))) }

  /// Returns the reason if this program cannot use the backup.
  var fault: String? {
    guard format == Self.formatNow else {
      return "it has format \(format), and this ferryd reads format \(Self.formatNow)"
    }
    let parts = [storeFile] + (missionKey.map { [$0] } ?? []) + content
    if let part = parts.first(where: { $0.size < 0 || ContentHash($0.sha256) == nil }) {
      return "“\(part.sha256.prefix(70))” with \(part.size) bytes is no part of a backup"
    }
    return nil
  }
}
