import CFerrySQLite

/// The locks of one database file (https://sqlite.org/lockingv3.html): any number of readers, one
/// of which may be about to write.
struct FileLocks {
  private var readerCount = 0
  /// The one handle with more than a shared lock, which it gives up when it closes or dies.
  private var writer: SimulatedFileHandle?

  init() {}

  /// True if a handle holds more than a shared lock.
  var isReserved: Bool { writer != nil }

  /// Raises the lock of `handle` to `level`; `false` when another one is in the way. On the way to
  /// an exclusive lock a handle stays at pending, which keeps new readers out.
  mutating func lock(_ handle: SimulatedFileHandle, _ level: Int32) -> Bool {
    if handle.lockLevel >= level { return true }
    if level == SQLITE_LOCK_SHARED {
      if let writer, writer.lockLevel >= SQLITE_LOCK_PENDING { return false }
      readerCount += 1
      handle.lockLevel = SQLITE_LOCK_SHARED
      return true
    }
    if let writer, writer !== handle { return false }
    writer = handle
    if level == SQLITE_LOCK_EXCLUSIVE && readerCount > 1 {
      handle.lockLevel = SQLITE_LOCK_PENDING
      return false
    }
    handle.lockLevel = level
    return true
  }

  /// Lowers the lock of `handle` to `level`, shared or none.
  mutating func unlock(_ handle: SimulatedFileHandle, _ level: Int32) {
    guard handle.lockLevel > level else { return }
    if writer === handle { writer = nil }
    if level == SQLITE_LOCK_NONE { readerCount -= 1 }
    handle.lockLevel = level
  }
}
