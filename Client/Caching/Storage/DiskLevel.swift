import FerryCryptography
import FerryPlatform
import FerrySQLite
import Foundation

/// Answers on disk: an index in SQLite with small bodies, and files for large ones.
///
/// Every change is one transaction under the index's write lock; it also adds and removes files. So
/// a row never lacks its file, and processes may share a folder. The next opening removes files
/// left by a crash without a row. All functions block.
final class DiskLevel {
  /// The largest body inside the index, in bytes.
  static let inlineMax = 16 << 10
  /// The approximate bytes of a row besides the fields and the body.
  static let rowBytes = 512
  /// The most answers under one key, for different values of the fields in `Vary`.
  static let variantsMax = 8

  let connection: SQLiteConnection
  let files: BodyFiles?
  private let place: (path: String, inode: UInt64)?

  /// Opens the cache in `folder` and creates it when needed; `nil` keeps everything in memory.
  ///
  /// It discards a damaged index or one of another version, and creates a new one.
  static func open(folder: String?, now: Int64) throws -> DiskLevel {
    guard let folder else {
      return DiskLevel(connection: try index(":memory:"), files: nil, place: nil)
    }
    try BodyFiles.makeFolder(folder)
    return try locked(folder) {
      do {
        return try swept(folder, now: now)
      } catch let error as SQLiteError where error.isDamage {
        discard(folder)
        return try swept(folder, now: now)
      }
    }
  }

  /// Removes the folder's content, unless another process has done so since this was opened.
  func discard() throws {
    guard let place else { return }
    let folder = String(place.path.dropLast("/index.db".count))
    try Self.locked(folder) {
      if isCurrent { Self.discard(folder) }
    }
  }

  /// True if this index is still the one in the folder.
  var isCurrent: Bool {
    guard let place else { return true }
    return Self.inode(place.path) == place.inode
  }

  private init(
    connection: SQLiteConnection, files: BodyFiles?, place: (path: String, inode: UInt64)?
  ) {
    self.connection = connection
    self.files = files
    self.place = place
  }

  private static func swept(_ folder: String, now: Int64) throws -> DiskLevel {
    let path = folder + "/index.db"
    let disk = DiskLevel(
      connection: try index(path), files: BodyFiles(folder: folder + "/bodies"),
      place: (path, inode(path) ?? 0))
    try disk.sweep(now: now)
    return disk
  }

  private static func index(_ path: String) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(path: path, busyTimeout: .seconds(2))
    try connection.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
    try connection.transaction {
      let version = try connection.integer("PRAGMA user_version")
      if version == CacheSchema.version { return }
      guard version == 0, try connection.integer("SELECT count(*) FROM sqlite_schema") == 0 else {
        throw SQLiteError(code: 26, message: "\(path) is an index of version \(version)")
      }
      try connection.execute(CacheSchema.statements)
    }
    return connection
  }

  /// Removes files without a row. The write lock excludes processes about to commit a row for their
  /// file.
  private func sweep(now: Int64) throws {
    try connection.transaction {
      try files?.sweep(now: now) { try isNeeded($0) }
    }
  }

  /// Returns true if a row refers to the file with this hash.
  func isNeeded(_ hash: [UInt8]) throws -> Bool {
    try connection.exists("SELECT 1 FROM entries WHERE hash = ? AND isFile = 1 LIMIT 1", hash)
  }

  private static func discard(_ folder: String) {
    for ending in ["-wal", "-shm", ""] { unlink(folder + "/index.db" + ending) }
    BodyFiles(folder: folder + "/bodies").removeAll()
  }

  /// Runs `body` under a lock: one process at a time opens and discards.
  private static func locked<T>(_ folder: String, _ body: () throws -> T) throws -> T {
    let path = folder + "/lock"
    let descriptor = Foundation.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw FileFailure(path) }
    defer {
      Platform.unlock(descriptor)
      close(descriptor)
    }
    while flock(descriptor, LOCK_EX) != 0 {
      guard errno == EINTR else { throw FileFailure(path) }
    }
    return try body()
  }

  private static func inode(_ path: String) -> UInt64? {
    var status = stat()
    return stat(path, &status) == 0 ? UInt64(status.st_ino) : nil
  }
}

extension SQLiteConnection {
  /// Returns the first column of the first row, zero without one.
  func integer(_ sql: String) throws -> Int64 {
    try first(sql) { $0.int64(0) } ?? 0
  }
}
