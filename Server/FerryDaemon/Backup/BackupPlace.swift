import FerryMissionServer
import FerryProtocol
import Foundation

/// The place of a backup: named parts, and the content of missions by its hashes.
protocol BackupPlace: Sendable {
  /// Its name in messages.
  var name: String { get }

  /// Whether it has nothing yet.
  func isEmpty() async throws -> Bool

  /// Returns the path at which a part is written before ``keep(_:)``.
  func draft(of part: String) throws -> String

  /// Keeps a part whose draft is complete, for this user alone.
  func keep(_ part: String) async throws -> BackupManifest.Part

  /// Keeps the list of the parts, which makes the backup one.
  func keepManifest(_ bytes: Data) async throws

  /// Returns the list of the parts; `nil` if there is none.
  func manifest() async throws -> Data?

  /// Returns the size and the hash of a part as it is now; `nil` if the part is absent.
  func found(_ part: String, size: Int64) async throws -> BackupManifest.Part?

  /// Returns the path of a file of this machine with a part.
  func file(of part: String, _ known: BackupManifest.Part) async throws -> String

  /// Returns the missions' content of the backup.
  func content() throws -> any ContentStore
}

/// A backup in a folder of this machine. Its calls block.
struct BackupFolder: BackupPlace {
  let name: String

  private func path(_ part: String) -> String { name + "/" + part }

  func isEmpty() -> Bool {
    ((try? FileManager.default.contentsOfDirectory(atPath: name)) ?? []).isEmpty
  }

  func draft(of part: String) throws -> String {
    try FileManager.default.createDirectory(
      atPath: name, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    // The folder may have been there, and its parts have the hashes of tokens.
    guard chmod(name, 0o700) == 0 else { throw BlobError(name, code: errno) }
    return path(part)
  }

  func keep(_ part: String) throws -> BackupManifest.Part {
    try BackupFile.sync(path(part))
    return try BackupFile.part(path(part))
  }

  func keepManifest(_ bytes: Data) throws {
    try BackupFile.write(bytes, to: path(BackupManifest.fileName))
    try BackupFile.sync(name)
  }

  func manifest() -> Data? {
    try? Data(contentsOf: URL(filePath: path(BackupManifest.fileName)))
  }

  func found(_ part: String, size: Int64) throws -> BackupManifest.Part? {
    guard FileManager.default.fileExists(atPath: path(part)) else { return nil }
    return try BackupFile.part(path(part))
  }

  func file(of part: String, _ known: BackupManifest.Part) -> String { path(part) }

  func content() throws -> any ContentStore { BlobThreads(try BlobDirectory(path("content"))) }
}

/// Files of backups. All calls block.
enum BackupFile {
  /// Writes a file for this user alone, and waits until it is on the disk.
  static func write(_ bytes: Data, to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw BlobError(path, code: errno) }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    try file.write(contentsOf: bytes)
    try file.synchronize()
  }

  /// Waits until a file or a folder is on the disk.
  static func sync(_ path: String) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw BlobError(path, code: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw BlobError(path, code: errno) }
  }

  static func part(_ path: String) throws -> BackupManifest.Part {
    let digest = try FileHasher.digest(of: path, chunkSize: nil)
    return .init(size: digest.size, sha256: digest.hash.description)
  }
}
