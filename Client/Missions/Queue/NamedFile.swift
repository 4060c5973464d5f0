import FerryPlatform
import FerryProtocol
import Foundation

/// The blocking calls on the files of downloads.
enum NamedFile {
  /// Gives a file another name in the same folder, for good; does nothing if there is no such file.
  static func move(_ former: String, to path: String) throws(FileStoreError) {
    guard size(of: former) != nil else { return }
    guard rename(former, path) == 0 else {
      throw FileStoreError(errno: errno, "\(path) cannot be created")
    }
    guard Platform.flushFolder(of: path) else {
      throw FileStoreError(errno: errno, "the folder of \(path) cannot be written to the disk")
    }
  }

  /// Removes a file, if it exists.
  static func remove(_ path: String) throws(FileStoreError) {
    guard unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR else {
      throw FileStoreError(errno: errno, "\(path) cannot be removed")
    }
  }

  /// Acquires the lock at `path`; `nil` if another process has it.
  static func lock(_ path: String) throws(FileStoreError) -> FileLock? {
    try FileLock.acquire(path, SystemFileCalls())
  }

  /// Creates a folder and a folder in it, if they are absent.
  static func makeFolder(_ path: String, with name: String) throws(FileStoreError) {
    _ = try Directory(making: path, SystemFileCalls()).making(name)
  }

  /// Removes a file or a folder with all content, if it exists.
  static func removeTree(_ name: String, in folder: String) throws(FileStoreError) {
    try Directory(making: folder, SystemFileCalls()).removeTree(name)
  }

  /// Returns the size of a regular file; `nil` if there is none.
  static func size(of path: String) -> Int64? {
    var facts = stat()
    guard lstat(path, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else { return nil }
    return Int64(facts.st_size)
  }
}

extension ContentHash {
  /// Reads a whole file and returns the hash. Blocks for as long as the disk does.
  package init(ofFile path: String) throws(DownloadError) {
    do {
      let system = SystemFileCalls()
      let descriptor = system.open(path, O_RDONLY | O_CLOEXEC, 0)
      guard descriptor >= 0 else { throw FileStoreError(errno: errno, "\(path) cannot be opened") }
      let file = RandomAccessFile(descriptor: descriptor, path: path, system)
      guard let hash = try file.hash() else { throw FileStoreError(.files, "\(path) has no hash") }
      self = hash
    } catch {
      throw DownloadError(converting: error)
    }
  }
}
