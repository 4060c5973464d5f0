import FerryPlatform
import Foundation

/// A body that is sent part by part, and again from the start if a redirect or a closed connection
/// requires it.
///
/// It never leaves the transport's thread. Reading a file there takes as long as the disk does, so
/// the kernel reads ahead.
package final class BodySource {
  private enum Content {
    case bytes([UInt8])
    case file(descriptor: Int32, start: Int)
  }

  /// The number of bytes sent in all.
  package let count: Int
  private let content: Content
  private let name: String
  private var position = 0

  /// Opens the body of `request`; throws kind `fileFailed` if its file cannot be opened or lacks
  /// the requested bytes.
  package init(_ request: TransportRequest) throws(TransportError) {
    guard let slice = request.file else {
      let bytes = request.body ?? []
      (content, count, name) = (.bytes(bytes), bytes.count, "the body")
      return
    }
    let descriptor = open(slice.path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.failure(slice.path) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      throw TransportError(.fileFailed, "\(slice.path) cannot be sent: it is not a regular file")
    }
    let range = slice.range ?? 0..<Int(status.st_size)
    guard 0 <= range.lowerBound, range.upperBound <= status.st_size else {
      close(descriptor)
      throw TransportError(
        .fileFailed, "\(slice.path) has \(status.st_size) bytes, and \(range) is not within them")
    }
    content = .file(descriptor: descriptor, start: range.lowerBound)
    (count, name) = (range.count, slice.path)
    Platform.readsInOrder(descriptor, from: range.lowerBound, count: count)
  }

  deinit {
    if case .file(let descriptor, _) = content { close(descriptor) }
  }

  /// Whether all was read.
  package var isAtEnd: Bool { position == count }

  /// Reads the next part. Returns its size, zero at the end. Throws kind `fileFailed`, also for a
  /// file that has become shorter.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> Int {
    let length = min(buffer.count, count - position)
    guard length > 0 else { return 0 }
    switch content {
    case .bytes(let bytes):
      bytes[position..<position + length].withUnsafeBytes { buffer.copyMemory(from: $0) }
      position += length
      return length
    case .file(let descriptor, let start):
      var got = -1
      repeat {
        got = pread(descriptor, buffer.baseAddress, length, off_t(start + position))
      } while got < 0 && errno == EINTR
      if got < 0 { throw Self.failure(name) }
      guard got > 0 else {
        throw TransportError(.fileFailed, "\(name) was shortened during the transfer")
      }
      position += got
      return got
    }
  }

  /// Moves to `offset`. Returns whether it is valid.
  package func seek(to offset: Int) -> Bool {
    guard 0...count ~= offset else { return false }
    position = offset
    return true
  }

  private static func failure(_ path: String) -> TransportError {
    TransportError(.fileFailed, "\(path) cannot be read: \(String(cString: strerror(errno)))")
  }
}
