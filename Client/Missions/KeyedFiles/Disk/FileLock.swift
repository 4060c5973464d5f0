import Foundation
import Synchronization

/// A lock between processes, and between managers of one process. The operating system holds it, so
/// a killed process leaves no stale lock.
public final class FileLock: Sendable {
  /// Releases the lock; `nil` after the release.
  private let ending: Mutex<(@Sendable () -> Void)?>

  /// Acquires the lock at `path`; `nil` if another owner has it.
  package static func acquire(_ path: String, _ system: any FileCalls) throws(FileStoreError)
    -> FileLock?
  {
    guard let descriptor = try open(path, system, { system.lock($0) }) else { return nil }
    return FileLock(path: path, descriptor: descriptor, system)
  }

  /// Acquires the lock at `path` together with others that share it; `nil` if one owner has it
  /// alone. The file stays, since others may share it at the end.
  package static func share(_ path: String, _ system: any FileCalls) throws(FileStoreError)
    -> FileLock?
  {
    guard let descriptor = try open(path, system, { system.share($0) }) else { return nil }
    return FileLock(path: nil, descriptor: descriptor, system)
  }

  /// Opens and locks a file; `nil` if another owner has the lock.
  private static func open(
    _ path: String, _ system: any FileCalls, _ lock: (Int32) -> Int32
  ) throws(FileStoreError) -> Int32? {
    while true {
      let descriptor = system.open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { throw FileStoreError(errno: errno, "\(path) cannot be created") }
      guard lock(descriptor) == 0 else {
        let code = errno
        system.close(descriptor)
        if code == EWOULDBLOCK { return nil }
        if code == EINTR { continue }
        throw FileStoreError(errno: code, "\(path) cannot be locked")
      }
      // The former owner removed the file at the end: a lock on it excludes nobody.
      var (ours, theirs) = (stat(), stat())
      if system.fstat(descriptor, &ours) == 0, system.lstat(path, &theirs) == 0,
        ours.st_ino == theirs.st_ino
      {
        return descriptor
      }
      system.close(descriptor)
    }
  }

  /// Locks one byte of the file at `path`; `nil` if it is locked. For thousands of short locks:
  /// they create and remove no files.
  package static func acquire(
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

  private convenience init(path: String?, descriptor: Int32, _ system: any FileCalls) {
    self.init {
      if let path { _ = system.unlink(path) }
      system.unlock(descriptor)
      system.close(descriptor)
    }
  }

  /// Creates a lock of another kind, for other implementations of files.
  ///
  /// - Parameter release: called once, at the end.
  public init(release: @escaping @Sendable () -> Void) { ending = Mutex(release) }

  /// Releases the lock.
  public func release() {
    let end = ending.withLock { $0.take() }
    end?()
  }

  deinit { release() }
}
