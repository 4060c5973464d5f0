import CFerrySQLite

extension SimulatedDisk {
  /// Opens the file at `path`, or a temporary one when there is no path, by SQLite's flags.
  func open(_ path: String?, flags: Int32) -> Result<SimulatedFileHandle, OpeningFailure> {
    guard let path else { return .success(handle(StoredFile(path: ""), flags)) }
    switch verdict(.open, path) {
    case .well: break
    case .full where files[path] != nil: break
    case .full, .fails: return .failure(.cannotOpen)
    case .crashes:
      if files[path] == nil, flags & SQLITE_OPEN_CREATE != 0, flip() { _ = create(path) }
      crash(at: path)
      return .failure(.cannotOpen)
    }
    if let file = files[path] {
      let isExclusive = flags & SQLITE_OPEN_EXCLUSIVE != 0
      return isExclusive ? .failure(.cannotOpen) : .success(handle(file, flags))
    }
    guard flags & SQLITE_OPEN_CREATE != 0 else { return .failure(.cannotOpen) }
    return .success(handle(create(path), flags))
  }

  /// The reason why a file was not opened; SQLite gets `SQLITE_CANTOPEN`.
  enum OpeningFailure: Error {
    case cannotOpen
  }

  func close(_ handle: SimulatedFileHandle) {
    handle.close()
    guard let last = openFiles.popLast(), last !== handle else { return }
    openFiles[handle.index] = last
    last.index = handle.index
  }

  /// Removes a name. `isDurable`: the folder is synced as well. Returns a result code.
  func delete(_ path: String, isDurable: Bool) -> Int32 {
    switch verdict(.delete, path) {
    case .fails: return ResultCode.delete
    case .crashes:
      if flip() { _ = unlink(path, isDurable: isDurable && flip()) }
      crash(at: path)
      return ResultCode.delete
    case .well, .full: return unlink(path, isDurable: isDurable)
    }
  }

  private func unlink(_ path: String, isDurable: Bool) -> Int32 {
    guard let file = files.removeValue(forKey: path) else { return ResultCode.deleteMissing }
    file.isLinked = false
    nameChanges.recordDeletion(file)
    if isDurable { nameChanges.sync(folder: folder(of: path)) }
    return SQLITE_OK
  }

  private func create(_ path: String) -> StoredFile {
    let file = StoredFile(path: path)
    files[path] = file
    nameChanges.recordCreation(file)
    return file
  }

  private func handle(_ file: StoredFile, _ flags: Int32) -> SimulatedFileHandle {
    let handle = SimulatedFileHandle(file, on: self, isReadOnly: flags & SQLITE_OPEN_READONLY != 0)
    handle.index = openFiles.count
    openFiles.append(handle)
    return handle
  }
}
