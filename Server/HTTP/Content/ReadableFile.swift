import Glibc

/// The reason why a file could not be opened; `code` is an errno, and EINVAL means that it is no
/// regular file.
package struct ReadableFileError: Error, Sendable, Equatable {
  package let code: Int32
}

/// A regular file open for reading, closed after the last use.
///
/// Any number of answers may read it at once; none moves the descriptor's own position. It stays
/// readable if the name is removed meanwhile. The content must not change while it is sent.
package final class ReadableFile: Sendable {
  /// In bytes, as it was when it was opened.
  package let size: Int
  let descriptor: Int32

  /// Opens a file. It blocks for as long as the disk takes. Throws `ReadableFileError`.
  package convenience init(path: String) throws(ReadableFileError) {
    // Opening a pipe without a writer would wait for one.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw ReadableFileError(code: errno) }
    try self.init(adopting: descriptor)
  }

  /// Owns the descriptor from here on, also when it throws `ReadableFileError`.
  package init(adopting descriptor: Int32) throws(ReadableFileError) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      let code = errno
      close(descriptor)
      throw ReadableFileError(code: code)
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw ReadableFileError(code: EINVAL)
    }
    self.descriptor = descriptor
    size = Int(status.st_size)
  }

  deinit { close(descriptor) }

  /// The size as it is now, in bytes; 0 if the system does not report it.
  var sizeNow: Int {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Returns a second descriptor of the file, which the caller closes; nil when there is none to be
  /// had.
  func duplicate() -> Int32? {
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    return copy >= 0 ? copy : nil
  }

  /// Reads up to as many bytes as the buffer holds; 0 at the end, nil when the disk fails.
  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    while true {
      let count = pread(descriptor, buffer.baseAddress, buffer.count, off_t(position))
      if count >= 0 { return count }
      guard errno == EINTR else { return nil }
    }
  }
}
