extension SimulatedDisk {
  /// The next step of a connection on a file.
  package enum SyncOperation: Sendable, CaseIterable {
    /// Opens it, making it when it is not there.
    case open
    case read
    case write
    case sync
    case truncate
    case delete
  }

  /// A step with a possible failure.
  package struct Step: Sendable {
    package let operation: SyncOperation
    /// The full path of the file.
    package let path: String
    /// Bytes read or written; of a truncation, the new size; otherwise 0.
    package let byteCount: Int
  }

  /// A fault at a step.
  package enum Fault: Sendable, CaseIterable {
    /// A write fails with `SQLITE_FULL` and writes no bytes; a new file is not made
    /// (`SQLITE_CANTOPEN`). Other steps succeed.
    case diskFull
    /// A sync fails with `SQLITE_IOERR_FSYNC`; unsynced changes stay unsynced. Other steps succeed.
    case syncFailure
    /// The step fails with its `SQLITE_IOERR` (an open with `SQLITE_CANTOPEN`). Of a write, a first
    /// part, perhaps empty, is written.
    case ioFailure
    /// The process with the path dies here. Of a write, a first part of any number of bytes is
    /// written; any other step is done or not.
    case crash
  }

  /// The fate of a step.
  enum Verdict {
    case well
    case full
    case fails
    case crashes
  }

  func verdict(_ operation: SyncOperation, _ path: String, _ byteCount: Int = 0) -> Verdict {
    if !killed.isEmpty { killed.removeAll() }
    let fault = faults(Step(operation: operation, path: path, byteCount: byteCount))
    if !killed.isEmpty, killed.contains(where: { $0.contains(path) }) { return .fails }
    return switch fault {
    case nil: .well
    case .diskFull: operation == .write || operation == .open ? .full : .well
    case .syncFailure: operation == .sync ? .fails : .well
    case .ioFailure: .fails
    case .crash: .crashes
    }
  }

  /// Returns a number from 0 to `count`, both included.
  func draw(upTo count: Int) -> Int { Int(random() % UInt64(count + 1)) }

  func flip() -> Bool { random() & 1 == 1 }

  func crash(at path: String) {
    kill(under: owner(path))
    onCrash(path)
  }

  // MARK: Processes and power

  /// Kills the process under `prefix` with signal 9.
  ///
  /// Every open handle of a file there fails from now on with `SQLITE_IOERR` (its close succeeds)
  /// and never writes again. Its locks and shared memory are gone. Written bytes stay. The files
  /// can be opened again at once, beside the dead connections.
  ///
  /// - Parameter prefix: A folder, for all files in it however deep. A database's path is for this
  ///   file with its journal and write-ahead log. "/" is the whole disk.
  package func kill(under prefix: String) {
    let place = Place(prefix)
    killed.append(place)
    for handle in openFiles where place.contains(handle.file.path) { handle.die() }
    for folders in folders(in: place) { folders.kill() }
  }

  /// Kills the process under `prefix` and removes part of the unsynced changes there.
  package func losePower(under prefix: String) {
    kill(under: prefix)
    let place = Place(prefix)
    nameChanges.losePower(in: place, files: &files, random: random)
    for path in paths(in: place) { files[path]?.losePower(random: random) }
    for folders in folders(in: place) { folders.losePower(random: random) }
  }
}
