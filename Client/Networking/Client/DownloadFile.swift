import FerryPlatform
import Foundation
import Synchronization

/// A file that appears at the final path once it is complete.
///
/// Every call blocks for as long as the disk does: one thread calls, one call after another.
final class DownloadFile: Sendable {
  private let path: String
  private let partial: String
  private let descriptor = Mutex<Int32?>(nil)

  /// Creates a file for `path`, written as `path.suffix.part` meanwhile.
  init(path: String, suffix: String) {
    self.path = path
    partial = "\(path).\(suffix).part"
  }

  deinit { discard() }

  /// Creates the partial file.
  func create() throws(NetworkError) {
    let opened = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
    guard opened >= 0 else { throw failure("cannot be created") }
    descriptor.withLock { $0 = opened }
  }

  /// Writes the next bytes.
  func append(_ bytes: [UInt8]) throws(NetworkError) {
    guard let descriptor = descriptor.withLock({ $0 }) else { return }
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 {
        if errno == EINTR { continue }
        throw failure("cannot be written")
      }
      rest = rest.dropFirst(count)
    }
  }

  /// Moves the file to the final path: a loss of power leaves the old file or the complete new one.
  func finish() throws(NetworkError) {
    guard let descriptor = descriptor.withLock({ $0 }) else { return }
    guard fsync(descriptor) == 0 else { throw failure("cannot be written") }
    guard rename(partial, path) == 0 else { throw failure("cannot be renamed to its final name") }
    self.descriptor.withLock { $0 = nil }
    close(descriptor)
    _ = Platform.flushFolder(of: path)
  }

  /// Removes an unfinished file.
  func discard() {
    let open = descriptor.withLock { descriptor in
      defer { descriptor = nil }
      return descriptor
    }
    guard let open else { return }
    close(open)
    unlink(partial)
  }

  private func failure(_ what: String) -> NetworkError {
    NetworkError(.fileFailed, "\(path) \(what): \(String(cString: strerror(errno)))")
  }
}
