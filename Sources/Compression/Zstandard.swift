#if SystemLibraries && !canImport(Darwin)
  import CFerryZstd

  /// Zstandard frames (RFC 8878) through libzstd.
  enum Zstandard {
    /// The largest window a decoder of HTTP content must offer: 8 MiB (RFC 9659 §3).
    private static let windowLogMax: Int32 = 23

    static func compress(_ bytes: [UInt8], level: Int) throws(CompressionError) -> [UInt8] {
      var status = 0
      let output = [UInt8](unsafeUninitializedCapacity: ZSTD_compressBound(bytes.count)) {
        buffer, count in
        status = ZSTD_compress(
          buffer.baseAddress, buffer.count, bytes, bytes.count, Int32(level))
        count = ZSTD_isError(status) == 0 ? status : 0
      }
      if ZSTD_isError(status) != 0 { throw error(status, limit: 0) }
      return output
    }

    static func decompress(_ bytes: [UInt8], limit: Int) throws(CompressionError) -> [UInt8] {
      let stream = try Decoder()
      var output = BoundedOutput(limit: limit, expected: expectedSize(bytes, limit: limit))
      let window = UnsafeMutableRawBufferPointer.allocate(
        byteCount: BoundedOutput.windowSize, alignment: 16)
      defer { window.deallocate() }
      try bytes.withUnsafeBufferPointer { (source) throws(CompressionError) in
        try stream.decode(
          UnsafeRawBufferPointer(source), through: window, into: &output, limit: limit)
      }
      return output.bytes
    }

    /// Returns the first frame's declared size, or a guess; only ever used to reserve within the
    /// limit.
    private static func expectedSize(_ bytes: [UInt8], limit: Int) -> Int {
      let declared = ZSTD_getFrameContentSize(bytes, bytes.count)
      // The two top values mean unknown and not a frame.
      return declared < UInt64(clamping: limit) ? Int(declared) : min(limit, bytes.count * 4)
    }

    private static func error(_ code: Int, limit: Int) -> CompressionError {
      switch ZSTD_getErrorCode(code) {
      case ZSTD_error_frameParameter_windowTooLarge: .tooLarge(limit: limit)
      case ZSTD_error_memory_allocation, ZSTD_error_parameter_outOfBound:
        .failed(String(cString: ZSTD_getErrorName(code)))
      default: .malformed
      }
    }

    /// A decompression context, freed with the value.
    private struct Decoder: ~Copyable {
      private let context: OpaquePointer

      init() throws(CompressionError) {
        guard let context = ZSTD_createDCtx() else { throw .failed("out of memory") }
        let status = ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, windowLogMax)
        guard ZSTD_isError(status) == 0 else {
          ZSTD_freeDCtx(context)
          throw error(status, limit: 0)
        }
        self.context = context
      }

      deinit { ZSTD_freeDCtx(context) }

      borrowing func decode(
        _ source: UnsafeRawBufferPointer, through window: UnsafeMutableRawBufferPointer,
        into output: inout BoundedOutput, limit: Int
      ) throws(CompressionError) {
        var input = ZSTD_inBuffer(src: source.baseAddress, size: source.count, pos: 0)
        var pending = 1
        while true {
          var piece = ZSTD_outBuffer(dst: window.baseAddress, size: window.count, pos: 0)
          pending = ZSTD_decompressStream(context, &piece, &input)
          if ZSTD_isError(pending) != 0 { throw error(pending, limit: limit) }
          try output.append(UnsafeRawBufferPointer(rebasing: window[..<piece.pos]))
          // With the input used up, only a full window can hide more output of the same frame.
          if input.pos == input.size && (pending == 0 || piece.pos < piece.size) { break }
        }
        // Zero means the end of a frame exactly here; anything else is a truncated frame.
        if pending != 0 { throw .malformed }
      }
    }
  }
#endif
