import FerryProtocol
import FerrySQLite
import Foundation

/// The place of the files beside a replica in memory: a separate folder. It exists only if a
/// manager of missions needs it, and is deleted with the replica.
final class MemoryPlace: Sendable {
  private let folder: String

  /// Returns the place for a replica at `path`; `nil` for a file.
  init?(path: String) {
    guard path == SQLiteConnection.memory else { return nil }
    folder = NSTemporaryDirectory() + "/ferry-memory-\(UUID().uuidString)"
  }

  deinit { remove() }

  /// The beginning of the paths of all files; another one for each replica in memory.
  var base: String { folder + "/replica" }

  /// Creates the folder, readable only for the owner (mode 0700).
  func create() throws {
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  /// Deletes the folder with the content.
  func remove() { try? FileManager.default.removeItem(atPath: folder) }
}

extension ReplicaSurroundings {
  /// Returns the same services for a replica in memory: no file beside it keeps a token or a lock.
  func inMemory() -> ReplicaSurroundings {
    var copy = self
    let locks = MemoryLocks()
    copy.lock = { try await locks.acquire($0, patience: $1) }
    if credentials is FileCredentialStore { copy.credentials = MemoryCredentialStore() }
    return copy
  }
}
