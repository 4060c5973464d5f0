import Foundation
import Synchronization

/// A lock between processes, and between managers of one process. The operating system holds it, so
/// a killed process leaves no stale lock.
public final class FileLock: Sendable {
  /// The file that is removed at the end; `nil` if other locks share it.
  private let path: String?
  private let descriptor: Mutex<Int32?>
  private let system: any FileCalls

  /// Takes the lock at `path`; `nil` if it is taken.
  package static func take(_ path: String, _ system: any FileCalls) throws(FileStoreError)
    -> FileLock?
  {
    while true {
      let descriptor = system.open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { throw FileStoreError(errno: errno, "\(path) cannot be created") }
      guard system.lock(descriptor) == 0 else {
        let code = errno
        system.close(descriptor)
        if code == EWOULDBLOCK { return nil }
        if code == EINTR { continue }
        throw FileStoreError(errno: code, "\(path) cannot be locked")
      }
      // The former owner removed the file at the end: a lock on that file excludes nobody.
      var (ours, theirs) = (stat(), stat())
      if system.fstat(descriptor, &ours) == 0, system.lstat(path, &theirs) == 0,
        ours.st_ino == theirs.st_ino
      {
        return FileLock(path: path, descriptor: descriptor, system)
      }
      system.close(descriptor)
    }
  }

  /// Takes one byte of the file at `path`; `nil` if it is taken. For thousands of short locks: they
  /// create and remove no files.
  package static func take(
    _ path: String, byte: Int64, _ system: any FileCalls
  ) throws(FileStoreError) -> FileLock? {
    let descriptor = system.open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw FileStoreError(errno: errno, "\(path) cannot be created") }
    while system.lock(descriptor, byte: byte) != 0 {
      let code = errno
      if code == EINTR { continue }
      system.close(descriptor)
      if code == EAGAIN || code == EACCES { return nil }
      throw FileStoreError(errno: code, "\(path) cannot be locked")
    }
    return FileLock(path: nil, descriptor: descriptor, system)
  }

  private init(path: String?, descriptor: Int32, _ system: any FileCalls) {
    self.path = path
    self.system = system
    self.descriptor = Mutex(descriptor)
  }

  /// Releases the lock.
  public func release() {
    descriptor.withLock { descriptor in
      guard let held = descriptor else { return }
      if let path { _ = system.unlink(path) }
      system.close(held)
      descriptor = nil
    }
  }

  deinit { release() }
}
