import CFerryZlib

/// Gzip members (RFC 1952) through zlib.
enum Gzip {
  /// Window bits of 15, plus 16 to accept gzip only.
  private static let gzipFormat: Int32 = 15 + 16

  static func compress(_ bytes: [UInt8], level: Int) throws(CompressionError) -> [UInt8] {
    var stream = z_stream()
    let opened = deflateInit2_(
      &stream, Int32(level), Z_DEFLATED, gzipFormat, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    guard opened == Z_OK else { throw .failed("deflateInit2: \(opened)") }
    defer { deflateEnd(&stream) }
    guard let inputSize = UInt32(exactly: bytes.count) else {
      throw .failed("input above 4 GiB")
    }
    var status = Z_OK
    let bound = Int(deflateBound(&stream, UInt(bytes.count)))
    let output = bytes.withUnsafeBufferPointer { source in
      [UInt8](unsafeUninitializedCapacity: bound) { buffer, count in
        stream.next_in = readable(source)
        stream.avail_in = inputSize
        stream.next_out = buffer.baseAddress
        stream.avail_out = UInt32(clamping: buffer.count)
        status = deflate(&stream, Z_FINISH)
        count = status == Z_STREAM_END ? Int(stream.total_out) : 0
      }
    }
    guard status == Z_STREAM_END else { throw .failed("deflate: \(status)") }
    return output
  }

  static func decompress(_ bytes: [UInt8], limit: Int) throws(CompressionError) -> [UInt8] {
    guard let inputSize = UInt32(exactly: bytes.count) else { throw .tooLarge(limit: limit) }
    var stream = z_stream()
    let opened = inflateInit2_(
      &stream, gzipFormat, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard opened == Z_OK else { throw .failed("inflateInit2: \(opened)") }
    defer { inflateEnd(&stream) }
    var output = BoundedOutput(limit: limit, expected: bytes.count * 4)
    let window = UnsafeMutableRawBufferPointer.allocate(
      byteCount: BoundedOutput.windowSize, alignment: 16)
    defer { window.deallocate() }
    try bytes.withUnsafeBufferPointer { (source) throws(CompressionError) in
      stream.next_in = readable(source)
      stream.avail_in = inputSize
      try inflateMembers(&stream, through: window, into: &output)
    }
    return output.bytes
  }

  private static func inflateMembers(
    _ stream: inout z_stream, through window: UnsafeMutableRawBufferPointer,
    into output: inout BoundedOutput
  ) throws(CompressionError) {
    while true {
      stream.next_out = window.bindMemory(to: UInt8.self).baseAddress
      stream.avail_out = UInt32(window.count)
      let status = inflate(&stream, Z_NO_FLUSH)
      let produced = window.count - Int(stream.avail_out)
      try output.append(UnsafeRawBufferPointer(rebasing: window[..<produced]))
      switch status {
      case Z_OK: continue
      case Z_STREAM_END where stream.avail_in == 0: return
      // The next bytes must be another member; inflate rejects anything else as a bad header.
      case Z_STREAM_END: inflateReset(&stream)
      case Z_MEM_ERROR: throw .failed("inflate: out of memory")
      // No progress means an end of the input inside a member.
      default: throw .malformed
      }
    }
  }

  /// zlib's input pointer is not const, though it only reads.
  private static func readable(
    _ source: UnsafeBufferPointer<UInt8>
  ) -> UnsafeMutablePointer<UInt8>? {
    UnsafeMutablePointer(mutating: source.baseAddress)
  }
}
