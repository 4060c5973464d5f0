import FerryLaboratory
import FerryMissions
import FerryProtocol
import Foundation

/// A process's calls on the files of the machine, as ``SystemFileCalls`` are in the product. They
/// fail after the death of the process.
// SAFETY: touched on the scheduler's thread only.
package final class SimulatedFileCalls: FileCalls, @unchecked Sendable {
  /// Free bytes reported by a machine.
  private static let freeBytes: UInt = 1 << 30

  private let folders: SimulatedFolders
  private let planted: PlantedFault?
  private let isAlive: () -> Bool
  /// Called with the name of each file right before the removal from a folder.
  private let isRemoving: (String) -> Void

  package init(
    _ folders: SimulatedFolders, planted: PlantedFault? = nil, isAlive: @escaping () -> Bool,
    isRemoving: @escaping (String) -> Void = { _ in }
  ) {
    (self.folders, self.planted) = (folders, planted)
    (self.isAlive, self.isRemoving) = (isAlive, isRemoving)
  }

  private func call<T>(
    or failure: T, _ body: () throws(SimulatedFolders.Failure) -> T
  ) -> T {
    guard isAlive() else {
      errno = EIO
      return failure
    }
    do {
      return try body()
    } catch {
      errno = error.code
      return failure
    }
  }

  private func perform(_ body: () throws(SimulatedFolders.Failure) -> Void) -> Int32 {
    call(or: -1) { () throws(SimulatedFolders.Failure) in
      try body()
      return 0
    }
  }

  // MARK: Opening

  package func open(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 {
    call(or: -1) { () throws(SimulatedFolders.Failure) in try folders.open(path, flags) }
  }

  package func openat(_ folder: Int32, _ name: String, _ flags: Int32, _ mode: mode_t) -> Int32 {
    call(or: -1) { () throws(SimulatedFolders.Failure) in
      try folders.open(in: folder, name, flags)
    }
  }

  package func close(_ descriptor: Int32) { folders.close(descriptor) }

  // MARK: Names

  package func mkdir(_ path: String, _ mode: mode_t) -> Int32 {
    perform { () throws(SimulatedFolders.Failure) in try folders.makeFolder(path) }
  }

  package func mkdirat(_ folder: Int32, _ name: String, _ mode: mode_t) -> Int32 {
    perform { () throws(SimulatedFolders.Failure) in try folders.makeFolder(in: folder, name) }
  }

  package func unlink(_ path: String) -> Int32 {
    perform { () throws(SimulatedFolders.Failure) in try folders.remove(path) }
  }

  package func unlinkat(_ folder: Int32, _ name: String, _ flags: Int32) -> Int32 {
    let isFolder = flags & AT_REMOVEDIR != 0
    if isAlive(), !isFolder { isRemoving(name) }
    return perform { () throws(SimulatedFolders.Failure) in
      // An object is named by its hash, and an item is not.
      if planted == .sharedContentRemoved, !isFolder, ContentHash(name) == nil {
        try removeObject(of: name, in: folder)
      }
      try folders.remove(in: folder, name, isFolder: isFolder)
    }
  }

  /// Removes the content of an item's file, also if other versions have it.
  private func removeObject(
    of name: String, in folder: Int32
  ) throws(SimulatedFolders.Failure) {
    let number = try folders.facts(in: folder, name).number
    for path in folders.paths() where path.contains("/objects/") {
      let object = "\(folders.place)/\(path)"
      if try folders.facts(object).number == number { try folders.remove(object) }
    }
  }

  package func renameat(_ folder: Int32, _ name: String, _ other: Int32, _ new: String) -> Int32 {
    perform { () throws(SimulatedFolders.Failure) in
      try folders.move(in: folder, name, to: other, new)
    }
  }

  package func linkat(_ folder: Int32, _ name: String, _ other: Int32, _ new: String) -> Int32 {
    perform { () throws(SimulatedFolders.Failure) in
      try folders.link(in: folder, name, to: other, new)
    }
  }

  // MARK: Looking

  package func lstat(_ path: String, _ facts: inout stat) -> Int32 {
    look(&facts) { () throws(SimulatedFolders.Failure) in try folders.facts(path) }
  }

  package func fstat(_ descriptor: Int32, _ facts: inout stat) -> Int32 {
    look(&facts) { () throws(SimulatedFolders.Failure) in try folders.facts(of: descriptor) }
  }

  package func fstatat(_ folder: Int32, _ name: String, _ facts: inout stat, _ flags: Int32)
    -> Int32
  {
    look(&facts) { () throws(SimulatedFolders.Failure) in try folders.facts(in: folder, name) }
  }

  private func look(
    _ facts: inout stat, _ body: () throws(SimulatedFolders.Failure) -> SimulatedFolders.Facts
  ) -> Int32 {
    let found = call(or: nil) {
      () throws(SimulatedFolders.Failure) -> SimulatedFolders.Facts? in try body()
    }
    guard let found else { return -1 }
    facts.st_mode = found.isFolder ? S_IFDIR | 0o700 : S_IFREG | 0o600
    facts.st_size = off_t(found.size)
    facts.st_ino = ino_t(found.number)
    return 0
  }

  package func room(_ path: String, _ facts: inout statvfs) -> Int32 {
    perform { () throws(SimulatedFolders.Failure) in
      _ = try folders.facts(path)
      facts.f_frsize = 1
      facts.f_bavail = fsblkcnt_t(Self.freeBytes)
    }
  }

  package func names(in folder: Int32) -> [String]? {
    call(or: nil) { () throws(SimulatedFolders.Failure) -> [String]? in
      try folders.names(in: folder)
    }
  }

  // MARK: Content

  package func pread(
    _ descriptor: Int32, _ target: UnsafeMutableRawPointer?, _ count: Int, _ offset: Int64
  ) -> Int {
    guard let target, count > 0 else { return 0 }
    return call(or: -1) { () throws(SimulatedFolders.Failure) in
      try folders.read(descriptor, target, count, at: Int(offset))
    }
  }

  package func pwrite(
    _ descriptor: Int32, _ source: UnsafeRawPointer?, _ count: Int, _ offset: Int64
  ) -> Int {
    guard let source, count > 0 else { return 0 }
    var bytes = [UInt8](UnsafeRawBufferPointer(start: source, count: count))
    // Content and no mark of progress; one write in eight.
    if planted == .chunkUnchecked, count > 64, bytes[0] % 8 == 0 { bytes[1] ^= 1 }
    return call(or: -1) { () throws(SimulatedFolders.Failure) in
      try folders.write(descriptor, bytes, count, at: Int(offset))
    }
  }

  package func ftruncate(_ descriptor: Int32, _ size: Int64) -> Int32 {
    perform { () throws(SimulatedFolders.Failure) in
      try folders.truncate(descriptor, to: Int(size))
    }
  }

  package func fchmod(_ descriptor: Int32, _ mode: mode_t) -> Int32 {
    perform { () throws(SimulatedFolders.Failure) in _ = try folders.facts(of: descriptor) }
  }

  package func fsync(_ descriptor: Int32) -> Int32 {
    perform { () throws(SimulatedFolders.Failure) in
      if planted != .contentNotSynced { try folders.sync(descriptor) }
    }
  }

  package func sync() { if isAlive() { folders.syncAll() } }

  // MARK: Locks

  package func lock(_ descriptor: Int32) -> Int32 {
    perform { () throws(SimulatedFolders.Failure) in try folders.lock(descriptor) }
  }

  package func share(_ descriptor: Int32) -> Int32 {
    perform { () throws(SimulatedFolders.Failure) in try folders.share(descriptor) }
  }

  package func lock(_ descriptor: Int32, byte: Int64) -> Int32 {
    perform { () throws(SimulatedFolders.Failure) in try folders.lock(descriptor, byte: byte) }
  }

  /// Nothing: processes of worlds do not fork, so closing releases the locks.
  package func unlock(_ descriptor: Int32) {}
}
