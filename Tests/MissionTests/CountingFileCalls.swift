import FerryMissions
import Foundation
import Synchronization

/// The calls of the operating system, with the number of bytes read and written, and perhaps on a
/// smaller disk.
final class CountingFileCalls: FileCalls {
  private let system = SystemFileCalls()
  /// The free bytes before the first write; `nil` for those of the disk.
  let space = Mutex<Int64?>(nil)
  /// The changes of folders before they fail, as on a disk that is gone; `nil` if none does.
  let changesLeft = Mutex<Int?>(nil)
  private let counts = Mutex<(read: Int, written: Int)>((0, 0))

  var bytesRead: Int { counts.withLock { $0.read } }
  var bytesWritten: Int { counts.withLock { $0.written } }

  /// Returns the result of a change of a folder; −1 if it fails.
  private func changed(_ change: () -> Int32) -> Int32 {
    let isLeft = changesLeft.withLock { left in
      guard let count = left else { return true }
      left = max(0, count - 1)
      return count > 0
    }
    if isLeft { return change() }
    errno = EIO
    return -1
  }

  func pread(
    _ descriptor: Int32, _ target: UnsafeMutableRawPointer?, _ count: Int, _ offset: Int64
  ) -> Int {
    let read = system.pread(descriptor, target, count, offset)
    counts.withLock { $0.read += max(0, read) }
    return read
  }

  func pwrite(
    _ descriptor: Int32, _ source: UnsafeRawPointer?, _ count: Int, _ offset: Int64
  ) -> Int {
    let written = system.pwrite(descriptor, source, count, offset)
    counts.withLock { $0.written += max(0, written) }
    return written
  }

  func open(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 {
    system.open(path, flags, mode)
  }
  func openat(_ folder: Int32, _ name: String, _ flags: Int32, _ mode: mode_t) -> Int32 {
    system.openat(folder, name, flags, mode)
  }
  func close(_ descriptor: Int32) { system.close(descriptor) }
  func mkdir(_ path: String, _ mode: mode_t) -> Int32 { system.mkdir(path, mode) }
  func mkdirat(_ folder: Int32, _ name: String, _ mode: mode_t) -> Int32 {
    changed { system.mkdirat(folder, name, mode) }
  }
  func unlink(_ path: String) -> Int32 { system.unlink(path) }
  func unlinkat(_ folder: Int32, _ name: String, _ flags: Int32) -> Int32 {
    system.unlinkat(folder, name, flags)
  }
  func renameat(_ folder: Int32, _ name: String, _ other: Int32, _ new: String) -> Int32 {
    changed { system.renameat(folder, name, other, new) }
  }
  func linkat(_ folder: Int32, _ name: String, _ other: Int32, _ new: String) -> Int32 {
    changed { system.linkat(folder, name, other, new) }
  }
  func lstat(_ path: String, _ facts: inout stat) -> Int32 { system.lstat(path, &facts) }
  func fstat(_ descriptor: Int32, _ facts: inout stat) -> Int32 {
    system.fstat(descriptor, &facts)
  }
  func fstatat(_ folder: Int32, _ name: String, _ facts: inout stat, _ flags: Int32) -> Int32 {
    system.fstatat(folder, name, &facts, flags)
  }
  func room(_ path: String, _ facts: inout statvfs) -> Int32 {
    let result = system.room(path, &facts)
    if let space = space.withLock({ $0 }) {
      facts.f_frsize = 1
      facts.f_bavail = numericCast(max(0, space - Int64(bytesWritten)))
    }
    return result
  }
  func names(in folder: Int32) -> [String]? { system.names(in: folder) }
  func ftruncate(_ descriptor: Int32, _ size: Int64) -> Int32 {
    system.ftruncate(descriptor, size)
  }
  func fchmod(_ descriptor: Int32, _ mode: mode_t) -> Int32 {
    changed { system.fchmod(descriptor, mode) }
  }
  func fsync(_ descriptor: Int32) -> Int32 { system.fsync(descriptor) }
  func sync() { system.sync() }
  func lock(_ descriptor: Int32) -> Int32 { system.lock(descriptor) }
  func share(_ descriptor: Int32) -> Int32 { system.share(descriptor) }
  func lock(_ descriptor: Int32, byte: Int64) -> Int32 { system.lock(descriptor, byte: byte) }
  func unlock(_ descriptor: Int32) { system.unlock(descriptor) }
}
