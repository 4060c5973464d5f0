import FerryCryptography
import FerryMissionServer
import FerryProtocol
import Foundation

/// The place of a backup: named parts, and the content of missions by hash.
protocol BackupPlace: Sendable {
  /// The name in messages.
  var name: String { get }

  /// Closes the place to other users. Returns `true` if it has nothing yet.
  func claim() async throws -> Bool

  /// Returns the path at which a part is written before ``copy(_:)``.
  func draft(of part: String) -> String

  /// Stores a part with a complete draft, for this user alone.
  func copy(_ part: String) async throws -> BackupManifest.Part

  /// Stores the list of the parts, which completes the backup.
  func storeManifest(_ bytes: Data) async throws

  /// Returns the list of the parts; `nil` if there is none.
  func manifest() async throws -> Data?

  /// Returns the size and the hash of a part as it is now; `nil` if the part is absent.
  func found(_ part: String, size: Int64) async throws -> BackupManifest.Part?

  /// Returns the path of a file of this machine with a part. Open it with ``BackupFile/open(_:)``.
  func file(of part: String, _ known: BackupManifest.Part) async throws -> String

  /// Returns the missions' content of the backup.
  func content() throws -> any ContentStore
}

/// A backup in a folder of this machine. The calls block.
struct BackupFolder: BackupPlace {
  let name: String

  private func path(_ part: String) -> String { name + "/" + part }

  /// The parts have the hashes of tokens. Another user with the right to write to the folder could
  /// lead a part to any other place, by a symbolic link with its name. So the folder is closed to
  /// others first, and has to be empty then.
  func claim() throws -> Bool {
    if try !BackupFile.exists(name) {
      try FileManager.default.createDirectory(
        atPath: name, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
    let folder = try BackupFile.openOwnFolder(name)
    defer { close(folder) }
    guard try isEmpty() else { return false }
    guard fchmod(folder, 0o700) == 0 else { throw BlobError(name, code: errno) }
    return try isEmpty()
  }

  private func isEmpty() throws -> Bool {
    try FileManager.default.contentsOfDirectory(atPath: name).isEmpty
  }

  func draft(of part: String) -> String { path(part) }

  func copy(_ part: String) throws -> BackupManifest.Part {
    try BackupFile.sync(path(part))
    return try BackupFile.part(path(part))
  }

  func storeManifest(_ bytes: Data) throws {
    try BackupFile.write(bytes, to: path(BackupManifest.fileName))
    try BackupFile.sync(name)
  }

  func manifest() throws -> Data? {
    let path = path(BackupManifest.fileName)
    guard try BackupFile.exists(path) else { return nil }
    let file = try BackupFile.open(path)
    let bytes = try file.read(upToCount: BackupManifest.bytesMax + 1) ?? Data()
    guard bytes.count <= BackupManifest.bytesMax else { throw BlobError(path, code: EFBIG) }
    return bytes
  }

  func found(_ part: String, size: Int64) throws -> BackupManifest.Part? {
    guard try BackupFile.exists(path(part)) else { return nil }
    return try BackupFile.part(path(part))
  }

  func file(of part: String, _ known: BackupManifest.Part) -> String { path(part) }

  func content() throws -> any ContentStore {
    let content = path("content")
    if try BackupFile.exists(content) { try BackupFile.checkFolder(content) }
    return BlobThreads(try BlobDirectory(content))
  }
}

/// Files of backups. All calls block.
///
/// Another user may have written the folder of a backup. So no part of it is read through a
/// symbolic link, which could lead to any file of this machine.
enum BackupFile {
  /// Creates a file for this user alone.
  static func create(_ path: String) throws -> FileHandle {
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
    let descriptor = Foundation.open(path, flags, 0o600)
    guard descriptor >= 0 else { throw BlobError(path, code: errno) }
    return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  }

  /// Writes a file for this user alone, and waits until it is on the disk.
  static func write(_ bytes: Data, to path: String) throws {
    let file = try create(path)
    try file.write(contentsOf: bytes)
    try file.synchronize()
  }

  /// Waits until a file or a folder is on the disk.
  static func sync(_ path: String) throws {
    let descriptor = Foundation.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw BlobError(path, code: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw BlobError(path, code: errno) }
  }

  static func part(_ path: String) throws -> BackupManifest.Part {
    try part(try open(path)) { _ in }
  }

  /// Copies a part for this user alone, and returns the hash of the copy.
  static func copy(_ path: String, to target: String) throws -> BackupManifest.Part {
    let copy = try create(target)
    let part = try part(try open(path)) { try copy.write(contentsOf: $0) }
    try copy.synchronize()
    return part
  }

  private static func part(
    _ file: FileHandle, _ body: (Data) throws -> Void
  ) throws -> BackupManifest.Part {
    var digest = SHA256()
    var size: Int64 = 0
    while let bytes = try file.read(upToCount: blockBytes), !bytes.isEmpty {
      digest.update(Array(bytes))
      size += Int64(bytes.count)
      try body(bytes)
    }
    return .init(size: size, sha256: ContentHash(digest: digest.finish()).description)
  }

  private static let blockBytes = 1 << 20

  /// Returns whether there is anything at a path, a symbolic link included.
  static func exists(_ path: String) throws -> Bool {
    var status = stat()
    if lstat(path, &status) == 0 { return true }
    guard errno == ENOENT || errno == ENOTDIR else { throw BlobError(path, code: errno) }
    return false
  }

  /// Opens a regular file for reading.
  ///
  /// - Throws: ``BackupError`` for a symbolic link, and ``BlobError/notAFile(path:)`` for a pipe, a
  ///   device or a folder.
  static func open(_ path: String) throws -> FileHandle {
    // Opening a pipe without a writer would wait for one.
    let descriptor = Foundation.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ELOOP { throw linked(path) }
      throw BlobError(path, code: errno)
    }
    let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw BlobError(path, code: errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw BlobError.notAFile(path: path) }
    return file
  }

  /// Opens a folder of this user for a new backup. Close the descriptor.
  ///
  /// - Throws: ``BackupError`` for a symbolic link, and for the folder of another user, because its
  ///   owner can read and replace each file.
  static func openOwnFolder(_ path: String) throws -> Int32 {
    let descriptor = Foundation.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else {
      let code = errno
      var status = stat()
      if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFLNK {
        throw unfit(path, "it is a symbolic link, which can lead to another place later")
      }
      throw BlobError(path, code: code)
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_uid == geteuid() else {
      close(descriptor)
      throw unfit(path, "it belongs to another user, and a backup has the hashes of all tokens")
    }
    return descriptor
  }

  private static func unfit(_ path: String, _ why: String) -> BackupError {
    BackupError(
      what: "\(path) cannot have a backup", why: why,
      next: "name a folder of your own, or one that does not exist yet")
  }

  /// Throws if anything in a folder is neither a folder nor a regular file.
  static func checkFolder(_ path: String) throws {
    var folders = [path]
    while let folder = folders.popLast() {
      var status = stat()
      guard lstat(folder, &status) == 0 else { throw BlobError(folder, code: errno) }
      switch status.st_mode & S_IFMT {
      case S_IFDIR:
        folders += try FileManager.default.contentsOfDirectory(atPath: folder)
          .map { folder + "/" + $0 }
      case S_IFREG: continue
      case S_IFLNK: throw linked(folder)
      default: throw BlobError.notAFile(path: folder)
      }
    }
  }

  private static func linked(_ path: String) -> BackupError {
    BackupError(
      what: "the backup is damaged", why: "\(path) is a symbolic link, and a backup has none",
      next: "use another backup, in a folder that only its owner can write to")
  }
}
