import Foundation
import Synchronization

/// A lock between processes, and between managers of one process. Held by the operating system, so
/// a killed process leaves no stale lock.
public final class FileLock: Sendable {
  /// The file that is removed at the end; `nil` where others lock parts of the same one.
  private let path: String?
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

  /// Takes one byte of the file at `path`; `nil` where somebody has it. For locks that are taken
  /// and given back by the thousand: no file comes and goes with them.
  static func take(_ path: String, byte: Int64) throws(MissionError) -> FileLock? {
    let descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw MissionError(errno: errno, "\(path) cannot be made") }
    var range = Foundation.flock()
    range.l_type = Int16(F_WRLCK)
    range.l_whence = Int16(SEEK_SET)
    range.l_start = off_t(byte)
    range.l_len = 1
    while fcntl(descriptor, Self.setDescriptionLock, &range) != 0 {
      let code = errno
      if code == EINTR { continue }
      close(descriptor)
      if code == EAGAIN || code == EACCES { return nil }
      throw MissionError(errno: code, "\(path) cannot be locked")
    }
    return FileLock(path: nil, descriptor: descriptor)
  }

  /// F_OFD_SETLK, which the C library shows only to those that ask for it: a lock that belongs to
  /// the open file, not to the process (fcntl(2)).
  #if canImport(Darwin)
    private static let setDescriptionLock: Int32 = 90
  #else
    private static let setDescriptionLock: Int32 = 37
  #endif

  private init(path: String?, descriptor: Int32) {
    self.path = path
    self.descriptor = Mutex(descriptor)
  }

  /// Frees the lock.
  public func release() {
    descriptor.withLock { descriptor in
      guard let held = descriptor else { return }
      if let path { unlink(path) }
      close(held)
      descriptor = nil
    }
  }

  deinit { release() }
}
