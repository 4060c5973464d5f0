import FerryCryptography
import FerryProtocol
import Foundation

/// The folders of a file store; all calls block.
///
/// - `files/<name><suffix>`: the files of the keys
/// - `new/<id>`: unfinished versions, and finished ones before the move to their place
struct FileFolders: Sendable {
  let root: String
  let system: any FileCalls

  /// Creates the folders.
  func make() throws(FileStoreError) {
    try Directory.makeAll(root, system)
    let folder = try Directory(making: root, system)
    for name in ["files", "new"] { _ = try folder.making(name) }
    try folder.sync()
  }

  func folder(_ name: String) throws(FileStoreError) -> Directory {
    try Directory(making: root, system).making(name)
  }

  /// Returns the place of a key's file.
  func path(of name: ContentHash, suffix: String) -> String { "\(root)/files/\(name)\(suffix)" }

  // MARK: Versions

  /// Moves a version to the final place, unless another process has done so.
  func place(_ version: FileVersion) throws(FileStoreError) {
    let files = try folder("files")
    _ = try folder("new").moveIfPresent(version.draft, to: files, as: version.fileName)
  }

  /// Opens the file of a version; `nil` if it is gone.
  func open(_ version: FileVersion) throws(FileStoreError) -> RandomAccessFile? {
    if version.isPending, let file = try folder("new").openFileIfPresent(version.draft) {
      return file
    }
    return try folder("files").openFileIfPresent(version.fileName)
  }

  /// Removes the file of a version. The caller holds the index's write lock.
  func remove(_ version: FileVersion) throws(FileStoreError) {
    // The version's writer may be about to move it; then there is nothing left to move.
    if version.isPending { try folder("new").removeFile(version.draft) }
    try folder("files").removeFile(version.fileName)
  }

  /// Writes the names of the keys' files to the disk.
  func sync() throws(FileStoreError) { try folder("files").sync() }

  // MARK: Leftovers

  /// Removes unfinished versions of killed processes.
  func sweep(isPending: (String) throws -> Bool) throws {
    let new = try folder("new")
    for name in try new.names() {
      guard let file = try new.openFileIfPresent(name), file.lock() else { continue }
      // A writer holds the lock until the version is in the index and in the final place.
      if try file.isNamed(name, in: new) && !isPending(name) { try new.removeFile(name) }
    }
  }
}

/// One version of a key's file.
struct FileVersion: Sendable, Equatable {
  let name: ContentHash
  /// The end of the file's name, the same for all versions of a key: see ``FileSuffix``.
  let suffix: String
  /// A random identifier.
  let id: [UInt8]
  /// True if it may still be in the folder of new files.
  var isPending: Bool

  /// The name in the folder of files.
  var fileName: String { "\(name)\(suffix)" }

  /// The name in the folder of new files.
  var draft: String { Hexadecimal.text(id) }
}
