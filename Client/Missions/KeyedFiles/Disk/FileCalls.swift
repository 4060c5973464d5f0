import FerryPlatform
import Foundation

/// The calls on the files of a store and of missions. They are POSIX's own: on a failure the result
/// is −1 and `errno` has the reason. A simulation replaces only the disk, so it runs the real rules
/// about names, order and durability.
package protocol FileCalls: Sendable {
  func open(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32
  func openat(_ folder: Int32, _ name: String, _ flags: Int32, _ mode: mode_t) -> Int32
  func close(_ descriptor: Int32)

  func mkdir(_ path: String, _ mode: mode_t) -> Int32
  func mkdirat(_ folder: Int32, _ name: String, _ mode: mode_t) -> Int32
  func unlink(_ path: String) -> Int32
  func unlinkat(_ folder: Int32, _ name: String, _ flags: Int32) -> Int32
  func renameat(_ folder: Int32, _ name: String, _ other: Int32, _ new: String) -> Int32
  /// Links a file; does not follow a symbolic link.
  func linkat(_ folder: Int32, _ name: String, _ other: Int32, _ new: String) -> Int32

  func lstat(_ path: String, _ facts: inout stat) -> Int32
  func fstat(_ descriptor: Int32, _ facts: inout stat) -> Int32
  func fstatat(_ folder: Int32, _ name: String, _ facts: inout stat, _ flags: Int32) -> Int32
  /// Reads the facts of statvfs(2).
  func room(_ path: String, _ facts: inout statvfs) -> Int32
  /// Returns all names in a folder, in any order; `nil`, and `errno`, if it cannot be read.
  func names(in folder: Int32) -> [String]?

  func pread(
    _ descriptor: Int32, _ target: UnsafeMutableRawPointer?, _ count: Int, _ offset: Int64
  ) -> Int
  func pwrite(
    _ descriptor: Int32, _ source: UnsafeRawPointer?, _ count: Int, _ offset: Int64
  ) -> Int
  func ftruncate(_ descriptor: Int32, _ size: Int64) -> Int32
  func fchmod(_ descriptor: Int32, _ mode: mode_t) -> Int32
  func fsync(_ descriptor: Int32) -> Int32
  /// Begins to write all changes of all files to the disk.
  func sync()

  /// Locks a file as flock(2) does, without waiting.
  func lock(_ descriptor: Int32) -> Int32
  /// Locks a file as flock(2) does for any number of sharers, without waiting.
  func share(_ descriptor: Int32) -> Int32
  /// Locks one byte of an open file (fcntl(2), `F_OFD_SETLK`), without waiting.
  func lock(_ descriptor: Int32, byte: Int64) -> Int32
  /// Releases the locks of an open file, also for a forked process with the file.
  func unlock(_ descriptor: Int32)
}

extension FileCalls {
  /// Returns the free bytes for this user on the disk of a folder.
  package func freeBytes(at path: String) throws(FileStoreError) -> Int64 {
    var facts = statvfs()
    guard room(path, &facts) == 0 else {
      throw FileStoreError(errno: errno, "the free space at \(path) is unknown")
    }
    let (bytes, isHuge) = Int64(clamping: facts.f_bavail).multipliedReportingOverflow(
      by: Int64(clamping: facts.f_frsize))
    return isHuge ? .max : bytes
  }
}

/// The calls of the operating system.
package struct SystemFileCalls: FileCalls {
  package init() {}

  package func open(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 {
    Foundation.open(path, flags, mode)
  }

  package func openat(
    _ folder: Int32, _ name: String, _ flags: Int32, _ mode: mode_t
  ) -> Int32 { Foundation.openat(folder, name, flags, mode) }

  package func close(_ descriptor: Int32) { _ = Foundation.close(descriptor) }

  package func mkdir(_ path: String, _ mode: mode_t) -> Int32 { Foundation.mkdir(path, mode) }

  package func mkdirat(_ folder: Int32, _ name: String, _ mode: mode_t) -> Int32 {
    Foundation.mkdirat(folder, name, mode)
  }

  package func unlink(_ path: String) -> Int32 { Foundation.unlink(path) }

  package func unlinkat(_ folder: Int32, _ name: String, _ flags: Int32) -> Int32 {
    Foundation.unlinkat(folder, name, flags)
  }

  package func renameat(
    _ folder: Int32, _ name: String, _ other: Int32, _ new: String
  ) -> Int32 { Foundation.renameat(folder, name, other, new) }

  package func linkat(_ folder: Int32, _ name: String, _ other: Int32, _ new: String) -> Int32 {
    Foundation.linkat(folder, name, other, new, 0)
  }

  package func lstat(_ path: String, _ facts: inout stat) -> Int32 {
    Foundation.lstat(path, &facts)
  }

  package func fstat(_ descriptor: Int32, _ facts: inout stat) -> Int32 {
    Foundation.fstat(descriptor, &facts)
  }

  package func fstatat(
    _ folder: Int32, _ name: String, _ facts: inout stat, _ flags: Int32
  ) -> Int32 { Foundation.fstatat(folder, name, &facts, flags) }

  package func room(_ path: String, _ facts: inout statvfs) -> Int32 {
    statvfs(path, &facts)
  }

  package func names(in folder: Int32) -> [String]? {
    // The stream closes its descriptor, and needs a fresh one with a separate position.
    let copy = Foundation.openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard copy >= 0, let stream = fdopendir(copy) else {
      let code = errno
      if copy >= 0 { close(copy) }
      errno = code
      return nil
    }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { name in
        name.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != "." && name != ".." { names.append(name) }
    }
    return names
  }

  package func pread(
    _ descriptor: Int32, _ target: UnsafeMutableRawPointer?, _ count: Int, _ offset: Int64
  ) -> Int { Foundation.pread(descriptor, target, count, off_t(offset)) }

  package func pwrite(
    _ descriptor: Int32, _ source: UnsafeRawPointer?, _ count: Int, _ offset: Int64
  ) -> Int { Foundation.pwrite(descriptor, source, count, off_t(offset)) }

  package func ftruncate(_ descriptor: Int32, _ size: Int64) -> Int32 {
    Foundation.ftruncate(descriptor, off_t(size))
  }

  package func fchmod(_ descriptor: Int32, _ mode: mode_t) -> Int32 {
    Foundation.fchmod(descriptor, mode)
  }

  package func fsync(_ descriptor: Int32) -> Int32 { Foundation.fsync(descriptor) }

  package func sync() { Foundation.sync() }

  package func lock(_ descriptor: Int32) -> Int32 {
    flock(descriptor, LOCK_EX | LOCK_NB)
  }

  package func share(_ descriptor: Int32) -> Int32 {
    flock(descriptor, LOCK_SH | LOCK_NB)
  }

  package func lock(_ descriptor: Int32, byte: Int64) -> Int32 {
    var range = Foundation.flock()
    range.l_type = Int16(F_WRLCK)
    range.l_whence = Int16(SEEK_SET)
    range.l_start = off_t(byte)
    range.l_len = 1
    return fcntl(descriptor, Platform.setDescriptionLock, &range)
  }

  package func unlock(_ descriptor: Int32) { Platform.unlock(descriptor) }
}
