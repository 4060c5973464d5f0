import CFerrySQLite

/// Returns SQLite's table of functions of a file system (https://sqlite.org/c3ref/vfs.html).
func fileSystemMethods(name: UnsafePointer<CChar>) -> sqlite3_vfs {
  var vfs = sqlite3_vfs()
  vfs.iVersion = 2
  vfs.szOsFile = Int32(MemoryLayout<ferry_vfs_file>.size)
  vfs.mxPathname = 1024
  vfs.zName = name
  setNameMethods(&vfs)
  setSurroundingsMethods(&vfs)
  return vfs
}

/// Lends the disk behind SQLite's file system to `body`.
private func with(
  _ vfs: UnsafeMutablePointer<sqlite3_vfs>?, _ body: (SimulatedDisk) -> Int32
) -> Int32 {
  guard let object = vfs?.pointee.pAppData else { return SQLITE_MISUSE }
  return Unmanaged<SimulatedDisk>.fromOpaque(object)._withUnsafeGuaranteedRef(body)
}

private func setNameMethods(_ vfs: inout sqlite3_vfs) {
  vfs.xOpen = { vfs, name, file, flags, outFlags in
    guard let file else { return SQLITE_MISUSE }
    return with(vfs) { disk in
      file.pointee.pMethods = nil
      let path = name.map { String(cString: $0) }
      guard case .success(let handle) = disk.open(path, flags: flags) else {
        return SQLITE_CANTOPEN
      }
      UnsafeMutableRawPointer(file).assumingMemoryBound(to: ferry_vfs_file.self).pointee.object =
        Unmanaged.passRetained(handle).toOpaque()
      file.pointee.pMethods = UnsafePointer(disk.methods)
      outFlags?.pointee = flags
      return SQLITE_OK
    }
  }
  vfs.xDelete = { vfs, name, isDurable in
    guard let name else { return SQLITE_MISUSE }
    return with(vfs) { $0.delete(String(cString: name), isDurable: isDurable != 0) }
  }
  vfs.xAccess = { vfs, name, _, answer in
    guard let name, let answer else { return SQLITE_MISUSE }
    return with(vfs) { disk in
      // An empty file counts as none, as in SQLite's VFS for Unix.
      let size = disk.files[String(cString: name)]?.bytes.count ?? 0
      answer.pointee = size > 0 ? 1 : 0
      return SQLITE_OK
    }
  }
  vfs.xFullPathname = { _, name, capacity, answer in
    guard let name, let answer else { return SQLITE_MISUSE }
    let path = absolutePath(String(cString: name)).utf8CString
    guard path.count <= Int(capacity) else { return SQLITE_CANTOPEN }
    for (index, character) in path.enumerated() { answer[index] = character }
    return SQLITE_OK
  }
}

private func setSurroundingsMethods(_ vfs: inout sqlite3_vfs) {
  // Extensions are not loaded from a simulated disk.
  vfs.xDlOpen = { _, _ in nil }
  vfs.xDlError = { _, capacity, text in if capacity > 0 { text?.pointee = 0 } }
  vfs.xDlClose = { _, _ in }
  vfs.xRandomness = { vfs, count, target in
    guard let target else { return 0 }
    return with(vfs) { disk in
      for index in 0..<Int(count) { target[index] = CChar(truncatingIfNeeded: disk.random()) }
      return count
    }
  }
  // On one thread, waiting frees no lock: the busy handler returns at once.
  vfs.xSleep = { _, microseconds in microseconds }
  vfs.xGetLastError = { _, _, _ in 0 }
  vfs.xCurrentTime = { vfs, days in
    with(vfs) { disk in
      days?.pointee = Double(julianMilliseconds(disk.clock())) / 86_400_000
      return SQLITE_OK
    }
  }
  vfs.xCurrentTimeInt64 = { vfs, milliseconds in
    with(vfs) { disk in
      milliseconds?.pointee = julianMilliseconds(disk.clock())
      return SQLITE_OK
    }
  }
}

/// Returns milliseconds since noon of 24 November 4714 before Christ, from those since 1970.
private func julianMilliseconds(_ unixMilliseconds: Int64) -> Int64 {
  unixMilliseconds + 210_866_760_000_000
}
