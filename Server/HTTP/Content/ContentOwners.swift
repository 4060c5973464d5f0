import CFerryMicroHTTPD
import Glibc

extension FileContent {
  /// Makes libmicrohttpd send a file by sendfile(2), from a duplicate descriptor to be closed by
  /// libmicrohttpd; nil when it is out of memory.
  func daemonResponse() -> OpaquePointer? {
    // Without a free descriptor it is read through the open one.
    guard count > 0, let descriptor = file.duplicate() else {
      return SegmentedContent([.file(self)]).daemonResponse()
    }
    let response = MHD_create_response_from_fd_at_offset64(
      UInt64(count), descriptor, UInt64(range.lowerBound))
    if response == nil { close(descriptor) }
    return response
  }
}

extension SegmentedContent {
  /// Makes libmicrohttpd ask for the content piece by piece; nil when it is out of memory.
  func daemonResponse() -> OpaquePointer? { SegmentsOwner(self).daemonResponse() }
}

/// The owner of segments while libmicrohttpd reads them.
private final class SegmentsOwner {
  /// Bytes of each answer in progress, and the most bytes read from a file at once.
  private static let blockSize = 64 << 10
  /// MHD_CONTENT_READER_END_WITH_ERROR, which closes the connection.
  private static let failure = -2

  private let content: SegmentedContent

  init(_ content: SegmentedContent) { self.content = content }

  func daemonResponse() -> OpaquePointer? {
    guard content.count > 0 else {
      return MHD_create_response_from_buffer(0, nil, .RESPMEM_PERSISTENT)
    }
    let owner = Unmanaged.passRetained(self)
    let response = MHD_create_response_from_callback(
      UInt64(content.count), Self.blockSize,
      { owner, position, buffer, size in
        guard let owner else { return SegmentsOwner.failure }
        let content = Unmanaged<SegmentsOwner>.fromOpaque(owner).takeUnretainedValue().content
        let buffer = UnsafeMutableRawBufferPointer(start: buffer, count: size)
        return content.read(at: Int(position), into: buffer) ?? SegmentsOwner.failure
      }, owner.toOpaque(), { releaseOwner($0, SegmentsOwner.self) })
    if response == nil { owner.release() }
    return response
  }
}

/// Creates an answer with the size of the content, and without the content: to `HEAD`, or with 304.
func contentlessDaemonResponse(count: Int) -> OpaquePointer? {
  MHD_create_response_from_callback(
    UInt64(count), 1, { _, _, _, _ in -2 }, nil, nil)
}
