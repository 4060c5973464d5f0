import CFerrySQLite

/// Returns SQLite's table of functions on an open file (https://sqlite.org/c3ref/io_methods.html).
func fileMethods() -> sqlite3_io_methods {
  var methods = sqlite3_io_methods()
  methods.iVersion = 2
  setContentMethods(&methods)
  setLockMethods(&methods)
  methods.xFileControl = { file, operation, argument in
    guard operation == SQLITE_FCNTL_HAS_MOVED else { return SQLITE_NOTFOUND }
    argument?.storeBytes(of: with(file) { $0.hasMoved ? 1 : 0 }, as: Int32.self)
    return SQLITE_OK
  }
  methods.xSectorSize = { _ in Int32(PowerLoss.Fate.sector) }
  methods.xDeviceCharacteristics = { _ in SQLITE_IOCAP_POWERSAFE_OVERWRITE }
  return methods
}

/// Lends the object behind SQLite's file to `body`.
@inline(__always)
private func with(
  _ file: UnsafeMutablePointer<sqlite3_file>?, _ body: (SimulatedFileHandle) -> Int32
) -> Int32 {
  guard let file, let object = fileObject(file) else { return SQLITE_MISUSE }
  return Unmanaged<SimulatedFileHandle>.fromOpaque(object)._withUnsafeGuaranteedRef(body)
}

@inline(__always)
private func fileObject(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutableRawPointer? {
  UnsafeMutableRawPointer(file).assumingMemoryBound(to: ferry_vfs_file.self).pointee.object
}

private func setContentMethods(_ methods: inout sqlite3_io_methods) {
  methods.xClose = { file in
    guard let file, let object = fileObject(file) else { return SQLITE_OK }
    file.pointee.pMethods = nil
    let handle = Unmanaged<SimulatedFileHandle>.fromOpaque(object).takeRetainedValue()
    handle.disk.close(handle)
    return SQLITE_OK
  }
  methods.xRead = { file, target, count, offset in
    guard let target else { return ResultCode.read }
    return with(file) { $0.read(target, count: Int(count), at: Int(offset)) }
  }
  methods.xWrite = { file, source, count, offset in
    guard let source else { return ResultCode.write }
    return with(file) { $0.write(source, count: Int(count), at: Int(offset)) }
  }
  methods.xTruncate = { file, size in with(file) { $0.truncate(to: Int(size)) } }
  methods.xSync = { file, _ in with(file) { $0.sync() } }
  methods.xFileSize = { file, size in
    guard let size else { return ResultCode.size }
    return with(file) { $0.size(&size.pointee) }
  }
}

private func setLockMethods(_ methods: inout sqlite3_io_methods) {
  methods.xLock = { file, level in with(file) { $0.lock(level) } }
  methods.xUnlock = { file, level in with(file) { $0.unlock(level) } }
  methods.xCheckReservedLock = { file, isReserved in
    guard let isReserved else { return ResultCode.checkReservedLock }
    return with(file) { $0.checkReservedLock(&isReserved.pointee) }
  }
  methods.xShmMap = { file, index, size, make, region in
    guard let region else { return ResultCode.sharedMemoryMap }
    region.pointee = nil
    return with(file) {
      $0.mapSharedMemory(Int(index), size: Int(size), make: make != 0, &region.pointee)
    }
  }
  methods.xShmLock = { file, offset, count, flags in
    with(file) { $0.lockSharedMemory(Int(offset)..<Int(offset + count), flags: flags) }
  }
  // One thread: every write to memory is seen in order.
  methods.xShmBarrier = { _ in }
  methods.xShmUnmap = { file, _ in
    with(file) {
      $0.unmapSharedMemory()
      return SQLITE_OK
    }
  }
}
