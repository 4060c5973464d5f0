import FerryPlatform
import Foundation

/// A body sent part by part, and again from the start if a redirect or a closed connection requires
/// it.
///
/// It never leaves the transport's thread. Reading a file there takes as long as the disk does, so
/// the kernel reads ahead. One file is open at a time, for any number of files.
package final class BodySource {
  private enum Content {
    case bytes([UInt8])
    case file(BodyFile)
  }

  private struct Segment {
    /// The offset of the first byte in the body.
    var start: Int
    var count: Int
    var content: Content
  }

  /// The number of bytes sent in all.
  package let count: Int
  private let segments: [Segment]
  /// The open file, by the index of the file's segment.
  private var current: (index: Int, descriptor: Int32)?
  private var index = 0
  private var position = 0

  /// Opens the body of `request`; throws kind `fileFailed` if one of the files cannot be opened or
  /// lacks the requested bytes.
  package init(_ request: TransportRequest) throws(TransportError) {
    var segments: [Segment] = []
    var total = 0
    var first: (index: Int, descriptor: Int32)?
    do throws(TransportError) {
      for part in Self.parts(of: request) {
        var segment = Segment(start: total, count: 0, content: .bytes([]))
        switch part {
        case .bytes(let bytes):
          (segment.count, segment.content) = (bytes.count, .bytes(bytes))
        case .file(let slice):
          let (file, descriptor) = try BodyFile.open(slice)
          // The first file stays open, so it may be removed or replaced meanwhile.
          if first == nil { first = (segments.count, descriptor) } else { close(descriptor) }
          (segment.count, segment.content) = (file.range.count, .file(file))
        }
        segments.append(segment)
        total += segment.count
      }
    } catch {
      if let first { close(first.descriptor) }
      throw error
    }
    (self.segments, count, current) = (segments, total, first)
    if let first, case .file(let file) = segments[first.index].content {
      Platform.readsInOrder(
        first.descriptor, from: file.range.lowerBound, count: file.range.count)
    }
  }

  deinit {
    if let current { close(current.descriptor) }
  }

  private static func parts(of request: TransportRequest) -> [BodyPart] {
    if !request.parts.isEmpty { return request.parts }
    return [request.file.map { .file($0) } ?? .bytes(request.body ?? [])]
  }

  /// True if all was read.
  package var isAtEnd: Bool { position == count }

  /// Reads the next part. Returns the part's size, zero at the end. Throws kind `fileFailed`, also
  /// for a file that has become shorter.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> Int {
    guard position < count, !buffer.isEmpty else { return 0 }
    while position >= segments[index].start + segments[index].count { index += 1 }
    let segment = segments[index]
    let offset = position - segment.start
    let length = min(buffer.count, segment.count - offset)
    switch segment.content {
    case .bytes(let bytes):
      bytes[offset..<offset + length].withUnsafeBytes { buffer.copyMemory(from: $0) }
      position += length
      return length
    case .file(let file):
      let descriptor = try descriptor(of: file)
      var got = -1
      repeat {
        got = pread(
          descriptor, buffer.baseAddress, length, off_t(file.range.lowerBound + offset))
      } while got < 0 && errno == EINTR
      if got < 0 { throw BodyFile.failure(file.path) }
      guard got > 0 else {
        throw TransportError(.fileFailed, "\(file.path) was shortened during the transfer")
      }
      position += got
      return got
    }
  }

  /// Moves to `offset`. Returns true if it is valid.
  package func seek(to offset: Int) -> Bool {
    guard 0...count ~= offset else { return false }
    (position, index) = (offset, 0)
    return true
  }

  /// Returns the open file of the current segment.
  private func descriptor(of file: BodyFile) throws(TransportError) -> Int32 {
    if let current, current.index == index { return current.descriptor }
    let (again, descriptor) = try BodyFile.open(
      FileSlice(path: file.path, range: file.range))
    guard again.identity == file.identity else {
      close(descriptor)
      throw TransportError(.fileFailed, "\(file.path) was replaced during the transfer")
    }
    if let current { close(current.descriptor) }
    current = (index, descriptor)
    Platform.readsInOrder(descriptor, from: file.range.lowerBound, count: file.range.count)
    return descriptor
  }
}

/// A file of a body: the bytes, and the file itself, also if its name later means another one.
private struct BodyFile {
  struct Identity: Equatable {
    let device: UInt64
    let number: UInt64
  }

  let path: String
  let range: Range<Int>
  let identity: Identity

  /// Opens the file of a slice. The caller closes the descriptor.
  static func open(_ slice: FileSlice) throws(TransportError) -> (BodyFile, Int32) {
    let descriptor = Foundation.open(slice.path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(slice.path) }
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
    let identity = Identity(
      device: UInt64(truncatingIfNeeded: status.st_dev),
      number: UInt64(truncatingIfNeeded: status.st_ino))
    return (BodyFile(path: slice.path, range: range, identity: identity), descriptor)
  }

  static func failure(_ path: String) -> TransportError {
    TransportError(.fileFailed, "\(path) cannot be read: \(String(cString: strerror(errno)))")
  }
}
