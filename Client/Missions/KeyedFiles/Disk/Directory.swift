import FerryPlatform
import Foundation

/// An open folder with access to entries by name alone, never through a symbolic link. So no call
/// here can leave it.
package struct Directory: ~Copyable {
  package let descriptor: Int32
  /// The path, for messages.
  package let path: String
  package let system: any FileCalls

  private init(descriptor: Int32, path: String, _ system: any FileCalls) {
    self.descriptor = descriptor
    self.path = path
    self.system = system
  }

  deinit { system.close(descriptor) }

  /// Opens the folder at `path`, and creates an absent one.
  package init(making path: String, _ system: any FileCalls) throws(FileStoreError) {
    if system.mkdir(path, 0o700) != 0, errno != EEXIST {
      throw FileStoreError(errno: errno, "\(path) cannot be created")
    }
    let descriptor = system.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    guard descriptor >= 0 else { throw FileStoreError(errno: errno, "\(path) cannot be opened") }
    self.init(descriptor: descriptor, path: path, system)
  }

  /// The facts about an entry.
  package struct Entry: Equatable {
    package enum Kind { case file, folder, other }
    package var kind: Kind
    /// The size in bytes.
    package var size: Int64
    package var device: UInt64
    package var inode: UInt64
  }

  /// Creates the folder at `path` for this user alone, with the folders above it, and writes their
  /// names to the disk.
  package static func makeAll(_ path: String, _ system: any FileCalls) throws(FileStoreError) {
    if system.mkdir(path, 0o700) != 0, errno != EEXIST {
      guard errno == ENOENT, let slash = path.last("/"), slash > path.startIndex else {
        throw FileStoreError(errno: errno, "\(path) cannot be created")
      }
      try makeAll(String(path[..<slash]), system)
      guard system.mkdir(path, 0o700) == 0 || errno == EEXIST else {
        throw FileStoreError(errno: errno, "\(path) cannot be created")
      }
    }
    try syncName(of: path, system)
  }

  /// Writes the name of a folder to the disk, also if another process created it; does nothing if
  /// this process may not read the folder above it.
  package static func syncName(
    of path: String, _ system: any FileCalls
  ) throws(FileStoreError) {
    let slash = path.last("/")
    let parent = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let descriptor = system.open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    guard descriptor >= 0 else { return }
    try Directory(descriptor: descriptor, path: parent, system).sync()
  }

  // MARK: Folders in it

  /// Opens a folder in it; creates an absent one if `isMade` is set, else returns `nil`.
  package func folder(_ name: String, making isMade: Bool = false) throws(FileStoreError)
    -> Directory?
  {
    try check(name)
    if isMade, system.mkdirat(descriptor, name, 0o700) != 0, errno != EEXIST {
      throw FileStoreError(errno: errno, "\(path)/\(name) cannot be created")
    }
    let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    let child = system.openat(descriptor, name, flags, 0)
    guard child >= 0 else {
      if errno == ENOENT && !isMade { return nil }
      throw FileStoreError(errno: errno, "\(path)/\(name) cannot be opened as a folder")
    }
    return Directory(descriptor: child, path: "\(path)/\(name)", system)
  }

  /// Opens a folder in it, and creates an absent one.
  package func making(_ name: String) throws(FileStoreError) -> Directory {
    guard let folder = try folder(name, making: true) else {
      throw FileStoreError(.files, "\(path)/\(name) was removed")
    }
    return folder
  }

  // MARK: Entries

  /// Returns the facts about an entry without following a symbolic link; `nil` if there is none.
  package func entry(_ name: String) throws(FileStoreError) -> Entry? {
    try check(name)
    var facts = stat()
    guard system.fstatat(descriptor, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw FileStoreError(errno: errno, "\(path)/\(name) cannot be inspected")
    }
    return Entry(facts)
  }

  /// Returns the names in it except `.` and `..`, in order.
  package func names() throws(FileStoreError) -> [String] {
    guard let names = system.names(in: descriptor) else {
      throw FileStoreError(errno: errno, "\(path) cannot be listed")
    }
    return names.sorted()
  }

  /// Removes a file, if it is there.
  package func removeFile(_ name: String) throws(FileStoreError) {
    try check(name)
    guard system.unlinkat(descriptor, name, 0) == 0 || errno == ENOENT else {
      throw FileStoreError(errno: errno, "\(path)/\(name) cannot be removed")
    }
  }

  /// Removes a file or a folder with all content, if it exists.
  package func removeTree(_ name: String) throws(FileStoreError) {
    guard let entry = try entry(name) else { return }
    guard entry.kind == .folder else { return try removeFile(name) }
    if let folder = try folder(name) {
      for child in try folder.names() { try folder.removeTree(child) }
    }
    guard system.unlinkat(descriptor, name, AT_REMOVEDIR) == 0 || errno == ENOENT else {
      throw FileStoreError(errno: errno, "\(path)/\(name) cannot be removed")
    }
  }

  /// Opens a file in it for reading; `nil` if there is none.
  package func openFileIfPresent(_ name: String) throws(FileStoreError) -> RandomAccessFile? {
    guard try entry(name) != nil else { return nil }
    let file = system.openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw FileStoreError(errno: errno, "\(path)/\(name) cannot be opened")
    }
    return RandomAccessFile(descriptor: file, path: "\(path)/\(name)", system)
  }

  /// Opens a file in it for reading.
  package func openFile(_ name: String) throws(FileStoreError) -> RandomAccessFile {
    try check(name)
    let file = system.openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0)
    guard file >= 0 else { throw FileStoreError(errno: errno, "\(path)/\(name) cannot be opened") }
    return RandomAccessFile(descriptor: file, path: "\(path)/\(name)", system)
  }

  /// Creates a file in it for writing; an existing one is lost.
  package func makeFile(_ name: String) throws(FileStoreError) -> RandomAccessFile {
    try removeFile(name)
    let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    let file = system.openat(descriptor, name, flags, 0o600)
    guard file >= 0 else { throw FileStoreError(errno: errno, "\(path)/\(name) cannot be created") }
    return RandomAccessFile(descriptor: file, path: "\(path)/\(name)", system)
  }

  /// Moves an entry to another folder of the same file system; replaces an existing one. Returns
  /// true if there was one.
  package func moveIfPresent(
    _ name: String, to other: borrowing Directory, as new: String
  ) throws(FileStoreError) -> Bool {
    do {
      try move(name, to: other, as: new)
      return true
    } catch {
      if try entry(name) == nil { return false }
      throw error
    }
  }

  /// Moves an entry to another folder of the same file system; replaces an existing one.
  package func move(_ name: String, to other: borrowing Directory, as new: String)
    throws(FileStoreError)
  {
    try check(name)
    try other.check(new)
    guard system.renameat(descriptor, name, other.descriptor, new) == 0 else {
      throw FileStoreError(errno: errno, "\(path)/\(name) cannot be moved to \(other.path)/\(new)")
    }
  }

  /// Writes the folder's own entries to the disk.
  package func sync() throws(FileStoreError) {
    guard system.fsync(descriptor) == 0 else {
      throw FileStoreError(errno: errno, "\(path) cannot be written to the disk")
    }
  }

  /// Throws if a name is not one step into this folder.
  package func check(_ name: String) throws(FileStoreError) {
    if name.isEmpty || name == "." || name == ".." || name.utf8.contains(0x2F)
      || name.utf8.contains(0)
    {
      throw FileStoreError(.files, "“\(name)” is not a file name")
    }
  }
}

extension Directory.Entry {
  fileprivate init(_ facts: stat) {
    switch facts.st_mode & S_IFMT {
    case S_IFREG: kind = .file
    case S_IFDIR: kind = .folder
    default: kind = .other
    }
    size = Int64(facts.st_size)
    device = UInt64(truncatingIfNeeded: facts.st_dev)
    inode = UInt64(facts.st_ino)
  }
}
