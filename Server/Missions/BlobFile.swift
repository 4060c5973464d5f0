import FerryPlatform
import Foundation

/// An open file, closed at the end. The calls block.
struct BlobFile: ~Copyable {
  let path: String
  private let descriptor: Int32

  /// Opens a file, with `flags` of open(2).
  init(_ path: String, _ flags: Int32, mode: mode_t = 0o640) throws(BlobError) {
    let descriptor = open(path, flags | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw BlobError(path, code: errno) }
    self.descriptor = descriptor
    self.path = path
  }

  /// Opens a file by an absolute path without symbolic links, for reading.
  ///
  /// Throws ``BlobError/changed(path:)`` if the path has a link. Another user may be able to write
  /// to a published folder, and could replace a file or a folder by a link after it was listed.
  init(linkless path: String) throws(BlobError) {
    var folder = open("/", Self.folderFlags)
    guard folder >= 0 else { throw BlobError("/", code: errno) }
    let names = path.utf8.split(separator: UInt8(ascii: "/"))
    for (index, name) in names.enumerated() {
      let flags =
        index == names.count - 1
        ? O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC : Self.folderFlags
      let next = openat(folder, String(Substring(name)), flags)
      let code = errno
      close(folder)
      guard next >= 0 else {
        throw code == ELOOP || code == ENOTDIR ? .changed(path: path) : BlobError(path, code: code)
      }
      folder = next
    }
    descriptor = folder
    self.path = path
  }

  #if os(Linux)
    /// `O_PATH`, missing in the C library's module: a folder without read permission may be passed.
    private static let passing: Int32 = 0o10_000_000
  #else
    private static let passing = O_RDONLY
  #endif
  private static let folderFlags = passing | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC

  deinit { close(descriptor) }

  /// Returns the system's facts about the file.
  func status() throws(BlobError) -> stat {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw BlobError(path, code: errno) }
    return status
  }

  /// Returns the size in bytes.
  func size() throws(BlobError) -> Int64 { Int64(try status().st_size) }

  /// Fills the buffer as far as there is content; returns the number of bytes.
  func read(
    at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
  ) throws(BlobError) -> Int {
    var filled = 0
    while filled < buffer.count {
      let count = pread(
        descriptor, buffer.baseAddress.map { $0 + filled }, buffer.count - filled,
        off_t(offset) + off_t(filled))
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw BlobError(path, code: errno) }
      if count == 0 { break }
      filled += count
    }
    return filled
  }

  /// Writes all of it.
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(BlobError) {
    var written = 0
    while written < bytes.count {
      let count = pwrite(
        descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written,
        off_t(offset) + off_t(written))
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw BlobError(path, code: count == 0 ? EIO : errno) }
      written += count
    }
  }

  /// Writes all of it.
  func write(_ bytes: [UInt8], at offset: Int64) throws(BlobError) {
    let written = bytes.withUnsafeBytes { bytes in
      Result { () throws(BlobError) in try write(bytes, at: offset) }
    }
    try written.get()
  }

  /// Returns the bytes of the content from `offset` on: so many, or as many as there are.
  func bytes(_ count: Int, at offset: Int64 = 0) throws(BlobError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let filled = bytes.withUnsafeMutableBytes { bytes in
      Result { () throws(BlobError) in try read(at: offset, into: bytes) }
    }
    return Array(bytes.prefix(try filled.get()))
  }

  /// Cuts the content off behind `size` bytes.
  func truncate(to size: Int64) throws(BlobError) {
    guard ftruncate(descriptor, off_t(size)) == 0 else { throw BlobError(path, code: errno) }
  }

  /// Makes the system write a part to the disk now, and does not wait. It reports no failure: a
  /// later ``sync()`` does.
  func startFlushing(_ bytes: Range<Int64>) {
    Platform.startFlushing(descriptor, from: bytes.lowerBound, count: Int64(bytes.count))
  }

  /// Returns when the content has reached the disk.
  func sync() throws(BlobError) {
    guard fsync(descriptor) == 0 else { throw BlobError(path, code: errno) }
  }

  /// Acquires the lock, or returns `false` if another process has it.
  func tryLock() throws(BlobError) -> Bool {
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return true }
    guard errno == EWOULDBLOCK else { throw BlobError(path, code: errno) }
    return false
  }

  /// Waits for the lock; it ends with this value. `operation`: of flock(2).
  func lock(_ operation: Int32) throws(BlobError) {
    while flock(descriptor, operation) != 0 {
      guard errno == EINTR else { throw BlobError(path, code: errno) }
    }
  }
}
