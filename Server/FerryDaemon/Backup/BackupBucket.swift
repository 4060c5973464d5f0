import FerryCryptography
import FerryMissionServer
import FerryProtocol
import Foundation

/// A backup in a bucket of an S3-compatible store. Parts are whole on this machine before they are
/// sent, and before they are restored.
final class BackupBucket: BackupPlace {
  private let files: ObjectFiles
  /// A folder of this run alone.
  private let folder: String

  var name: String { files.place }

  init(_ files: ObjectFiles) throws {
    self.files = files
    folder =
      FileManager.default.temporaryDirectory.path + "/ferry-backup-"
      + UUID().uuidString.lowercased()
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  func claim() async throws -> Bool { try await files.isEmpty() }

  func draft(of part: String) -> String { folder + "/" + part }

  func copy(_ part: String) async throws -> BackupManifest.Part {
    let path = draft(of: part)
    let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int64 ?? 0
    let digest = try FileHasher.digest(of: path, chunkSize: files.chunkSize(for: size))
    try await files.put(file: path, digest, as: part)
    try FileManager.default.removeItem(atPath: path)
    return .init(size: digest.size, sha256: digest.hash.description)
  }

  func storeManifest(_ bytes: Data) async throws {
    try await files.put(Array(bytes), as: BackupManifest.fileName)
  }

  func manifest() async throws -> Data? {
    try await files.content(of: BackupManifest.fileName, limit: BackupManifest.bytesMax).map {
      Data($0)
    }
  }

  func found(_ part: String, size: Int64) async throws -> BackupManifest.Part? {
    guard let found = try await files.size(of: part) else { return nil }
    // A part of another size is damaged, however it goes on.
    guard found == size else { return .init(size: found, sha256: "") }
    return try await read(part, size) { _ in }
  }

  func file(of part: String, _ known: BackupManifest.Part) async throws -> String {
    let path = draft(of: part)
    try? FileManager.default.removeItem(atPath: path)
    let file = try BackupFile.create(path)
    let found = try await read(part, known.size) { try file.write(contentsOf: $0) }
    try file.close()
    guard found == known else { throw BlobError.changed(path: "\(name) \(part)") }
    return path
  }

  private func read(
    _ part: String, _ size: Int64, _ body: ([UInt8]) throws -> Void
  ) async throws -> BackupManifest.Part {
    let reader = try await files.read(part, 0..<size, of: size)
    var digest = SHA256()
    var count: Int64 = 0
    while let bytes = try await reader.next() {
      digest.update(bytes)
      count += Int64(bytes.count)
      try body(bytes)
    }
    let hash = ContentHash(digest: digest.finish())
    return .init(size: count, sha256: hash.description)
  }

  func content() throws -> any ContentStore {
    ObjectContent(files, local: BlobThreads(try BlobDirectory(folder + "/uploads")))
  }
}
