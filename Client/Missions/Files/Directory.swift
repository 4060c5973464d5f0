import Foundation

/// An open folder whose entries are reached by name alone, never through a symbolic link. So no
/// call here can leave it.
struct Directory: ~Copyable {
  let descriptor: Int32
  /// The path, for messages.
  let path: String
  let system: any FileCalls

  private init(descriptor: Int32, path: String, _ system: any FileCalls) {
    self.descriptor = descriptor
    self.path = path
    self.system = system
  }

  deinit { system.close(descriptor) }

  /// Opens the folder at `path`, and creates an absent one.
  init(making path: String, _ system: any FileCalls) throws(MissionError) {
    if system.mkdir(path, 0o700) != 0, errno != EEXIST {
      throw MissionError(errno: errno, "\(path) cannot be created")
    }
    let descriptor = system.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    guard descriptor >= 0 else { throw MissionError(errno: errno, "\(path) cannot be opened") }
    self.init(descriptor: descriptor, path: path, system)
  }

  /// The facts about an entry.
  struct Entry: Equatable {
    enum Kind { case file, folder, other }
    var kind: Kind
    /// The size in bytes.
    var size: Int64
    var device: UInt64
    var inode: UInt64
  }

  // MARK: Folders in it

  /// Opens a folder in it; creates an absent one if `isMade` is set, else returns `nil`.
  func folder(_ name: String, making isMade: Bool = false) throws(MissionError) -> Directory? {
    try check(name)
    if isMade, system.mkdirat(descriptor, name, 0o700) != 0, errno != EEXIST {
      throw MissionError(errno: errno, "\(path)/\(name) cannot be created")
    }
    let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    let child = system.openat(descriptor, name, flags, 0)
    guard child >= 0 else {
      if errno == ENOENT && !isMade { return nil }
      throw MissionError(errno: errno, "\(path)/\(name) cannot be opened as a folder")
    }
    return Directory(descriptor: child, path: "\(path)/\(name)", system)
  }

  /// Opens a folder in it, and creates an absent one.
  func making(_ name: String) throws(MissionError) -> Directory {
    guard let folder = try folder(name, making: true) else {
      throw MissionError(.files, "\(path)/\(name) was removed")
    }
    return folder
  }

  // MARK: Entries

  /// Returns the facts about an entry without following a symbolic link; `nil` if there is none.
  func entry(_ name: String) throws(MissionError) -> Entry? {
    try check(name)
    var facts = stat()
    guard system.fstatat(descriptor, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 else {
      if errno == ENOENT || errno == ENOTDIR { return nil }
      throw MissionError(errno: errno, "\(path)/\(name) cannot be inspected")
    }
    return Entry(facts)
  }

  /// Returns the names in it except `.` and `..`, in order.
  func names() throws(MissionError) -> [String] {
    guard let names = system.names(in: descriptor) else {
      throw MissionError(errno: errno, "\(path) cannot be listed")
    }
    return names.sorted()
  }

  /// Removes a file, if it is there.
  func removeFile(_ name: String) throws(MissionError) {
    try check(name)
    guard system.unlinkat(descriptor, name, 0) == 0 || errno == ENOENT else {
      throw MissionError(errno: errno, "\(path)/\(name) cannot be removed")
    }
  }

  /// Removes a file or a folder with its content, if it exists.
  func removeTree(_ name: String) throws(MissionError) {
    guard let entry = try entry(name) else { return }
    guard entry.kind == .folder else { return try removeFile(name) }
    if let folder = try folder(name) {
      for child in try folder.names() { try folder.removeTree(child) }
    }
    guard system.unlinkat(descriptor, name, AT_REMOVEDIR) == 0 || errno == ENOENT else {
      throw MissionError(errno: errno, "\(path)/\(name) cannot be removed")
    }
  }

  /// Opens a file in it for reading.
  func openFile(_ name: String) throws(MissionError) -> RandomAccessFile {
    try check(name)
    let file = system.openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0)
    guard file >= 0 else { throw MissionError(errno: errno, "\(path)/\(name) cannot be opened") }
    return RandomAccessFile(descriptor: file, path: "\(path)/\(name)", system)
  }

  /// Creates a file in it for writing; an existing one is lost.
  func makeFile(_ name: String) throws(MissionError) -> RandomAccessFile {
    try removeFile(name)
    let flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    let file = system.openat(descriptor, name, flags, 0o600)
    guard file >= 0 else { throw MissionError(errno: errno, "\(path)/\(name) cannot be created") }
    return RandomAccessFile(descriptor: file, path: "\(path)/\(name)", system)
  }

  /// Moves an entry to another folder of the same file system; replaces an existing one.
  func move(_ name: String, to other: borrowing Directory, as new: String) throws(MissionError) {
    try check(name)
    try other.check(new)
    guard system.renameat(descriptor, name, other.descriptor, new) == 0 else {
      throw MissionError(errno: errno, "\(path)/\(name) cannot be moved to \(other.path)/\(new)")
    }
  }

  /// Writes the folder's own entries to the disk.
  func sync() throws(MissionError) {
    guard system.fsync(descriptor) == 0 else {
      throw MissionError(errno: errno, "\(path) cannot be written to the disk")
    }
  }

  /// Checks that a name is one step into this folder.
  func check(_ name: String) throws(MissionError) {
    if name.isEmpty || name == "." || name == ".." || name.utf8.contains(0x2F)
      || name.utf8.contains(0)
    {
      throw MissionError(.files, "“\(name)” is not a file name")
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

extension MissionError {
  /// Creates an error from the operating system's error number.
  init(errno code: Int32, _ what: String) {
    let isFull = code == ENOSPC || code == EDQUOT
    self.init(isFull ? .diskFull : .files, "\(what): \(String(cString: strerror(code)))")
  }
}
