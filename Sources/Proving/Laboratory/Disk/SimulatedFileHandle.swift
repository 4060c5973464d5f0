import CFerrySQLite

/// One handle on a file, as SQLite holds it. Every operation returns a result code.
final class SimulatedFileHandle {
  /// Kept alive by the handles: SQLite calls into it while one is open.
  let disk: SimulatedDisk
  let file: StoredFile
  /// Changed by ``FileLocks`` only.
  var lockLevel = SQLITE_LOCK_NONE
  /// Where it is among the disk's open files.
  var index = 0
  private let isReadOnly: Bool
  private var isAlive = true
  private var sharedMemory: SharedMemory?
  private var heldLocks = HeldLocks()

  init(_ file: StoredFile, on disk: SimulatedDisk, isReadOnly: Bool) {
    self.disk = disk
    self.file = file
    self.isReadOnly = isReadOnly
  }

  /// Marks the process as killed: the handle fails from now on and holds no lock. The shared memory
  /// it has mapped is no longer anybody else's, because every handle of the file dies with it.
  func die() {
    guard isAlive else { return }
    isAlive = false
    file.locks.unlock(self, SQLITE_LOCK_NONE)
    releaseSharedLocks()
    if let sharedMemory, file.sharedMemory === sharedMemory { file.sharedMemory = nil }
  }

  func close() {
    file.locks.unlock(self, SQLITE_LOCK_NONE)
    unmapSharedMemory()
  }

  // MARK: Content

  func read(_ target: UnsafeMutableRawPointer, count: Int, at offset: Int) -> Int32 {
    switch verdict(.read, count) {
    case nil, .fails: return ResultCode.read
    case .crashes:
      disk.crash(at: file.path)
      return ResultCode.read
    case .well, .full: break
    }
    let length = file.read(target, count: count, at: offset)
    guard length < count else { return SQLITE_OK }
    ferry_zero(target + length, count - length)
    return ResultCode.shortRead
  }

  func write(_ source: UnsafeRawPointer, count: Int, at offset: Int) -> Int32 {
    if isReadOnly { return SQLITE_READONLY }
    switch verdict(.write, count) {
    case nil: return ResultCode.write
    case .well:
      file.write(source, count: count, at: offset)
      return SQLITE_OK
    case .full: return SQLITE_FULL
    case .fails: file.write(source, count: disk.draw(upTo: count), at: offset)
    case .crashes:
      file.write(source, count: disk.draw(upTo: count), at: offset)
      disk.crash(at: file.path)
    }
    return ResultCode.write
  }

  func truncate(to size: Int) -> Int32 {
    if isReadOnly { return SQLITE_READONLY }
    return perform(.truncate, size, failure: ResultCode.truncate) { $0.file.resize(to: size) }
  }

  func sync() -> Int32 {
    perform(.sync, 0, failure: ResultCode.sync) { handle in
      handle.file.sync()
      guard handle.file.isNameNew else { return }
      handle.file.isNameNew = false
      handle.disk.nameChanges.sync(folder: folder(of: handle.file.path))
    }
  }

  func size(_ size: inout Int64) -> Int32 {
    guard isAlive else { return ResultCode.size }
    size = Int64(file.bytes.count)
    return SQLITE_OK
  }

  /// True if the name leads elsewhere by now.
  var hasMoved: Bool { !file.isTemporary && !file.isLinked }

  // MARK: Locks

  func lock(_ level: Int32) -> Int32 {
    guard isAlive else { return ResultCode.lock }
    return file.locks.lock(self, level) ? SQLITE_OK : SQLITE_BUSY
  }

  func unlock(_ level: Int32) -> Int32 {
    if isAlive { file.locks.unlock(self, level) }
    return SQLITE_OK
  }

  func checkReservedLock(_ isReserved: inout Int32) -> Int32 {
    guard isAlive else { return ResultCode.checkReservedLock }
    isReserved = file.locks.isReserved ? 1 : 0
    return SQLITE_OK
  }

  // MARK: Shared memory

  func mapSharedMemory(
    _ index: Int, size: Int, make: Bool, _ region: inout UnsafeMutableRawPointer?
  ) -> Int32 {
    guard isAlive else { return ResultCode.sharedMemoryMap }
    let memory = sharedMemory ?? file.sharedMemory ?? SharedMemory()
    if sharedMemory == nil {
      sharedMemory = memory
      file.sharedMemory = memory
      memory.attach()
    }
    region = memory.region(index, size: size, make: make)
    return SQLITE_OK
  }

  func lockSharedMemory(_ range: Range<Int>, flags: Int32) -> Int32 {
    guard let sharedMemory, isAlive else { return ResultCode.sharedMemoryLock }
    if flags & SQLITE_SHM_UNLOCK != 0 {
      sharedMemory.unlock(range, held: &heldLocks)
      return SQLITE_OK
    }
    let isExclusive = flags & SQLITE_SHM_EXCLUSIVE != 0
    return sharedMemory.lock(range, isExclusive: isExclusive, held: &heldLocks)
      ? SQLITE_OK : SQLITE_BUSY
  }

  func unmapSharedMemory() {
    guard let memory = sharedMemory else { return }
    releaseSharedLocks()
    memory.detach()
    if memory.connectionCount == 0, file.sharedMemory === memory { file.sharedMemory = nil }
    sharedMemory = nil
  }

  private func releaseSharedLocks() {
    sharedMemory?.unlock(0..<Int(SQLITE_SHM_NLOCK), held: &heldLocks)
  }

  // MARK: Faults

  /// Returns the fate of a step; `nil` if the process is dead, perhaps by this very step.
  private func verdict(
    _ operation: SimulatedDisk.SyncOperation, _ byteCount: Int
  ) -> SimulatedDisk.Verdict? {
    guard isAlive else { return nil }
    if file.isTemporary { return .well }
    let verdict = disk.verdict(operation, file.path, byteCount)
    return isAlive ? verdict : nil
  }

  /// Performs a step, which is done or not done.
  private func perform(
    _ operation: SimulatedDisk.SyncOperation, _ byteCount: Int, failure: Int32,
    _ body: (SimulatedFileHandle) -> Void
  ) -> Int32 {
    switch verdict(operation, byteCount) {
    case nil, .fails: return failure
    case .well, .full:
      body(self)
      return SQLITE_OK
    case .crashes:
      if disk.flip() { body(self) }
      disk.crash(at: file.path)
      return failure
    }
  }
}
