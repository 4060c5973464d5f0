import Foundation
import Synchronization

/// A lock between processes, and between managers of one process. Held by the operating system, so
/// a killed process leaves no stale lock.
public final class FileLock: Sendable {
  private let path: String
  private let descriptor: Mutex<Int32?>

  /// Takes the lock at `path`; `nil` where somebody has it.
  static func take(_ path: String) throws(MissionError) -> FileLock? {
    while true {
      let descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { throw MissionError(errno: errno, "\(path) cannot be made") }
      guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
        let code = errno
        close(descriptor)
        if code == EWOULDBLOCK { return nil }
        if code == EINTR { continue }
        throw MissionError(errno: code, "\(path) cannot be locked")
      }
      // Whoever had it removed the file at the end: a lock on that one keeps nobody out.
      var (ours, theirs) = (stat(), stat())
      if fstat(descriptor, &ours) == 0, lstat(path, &theirs) == 0, ours.st_ino == theirs.st_ino {
        return FileLock(path: path, descriptor: descriptor)
      }
      close(descriptor)
    }
  }

  private init(path: String, descriptor: Int32) {
    self.path = path
    self.descriptor = Mutex(descriptor)
  }

  /// Frees the lock.
  public func release() {
    descriptor.withLock { descriptor in
      guard let held = descriptor else { return }
      unlink(path)
      close(held)
      descriptor = nil
    }
  }

  deinit { release() }
}
