import Glibc

/// The system's counters of a connection's progress (tcp(7)).
enum SocketProgress {
  /// `tcpi_bytes_acked` of `struct tcp_info` (linux/tcp.h, since Linux 4.1), which glibc's own
  /// header leaves out.
  private static let acknowledgedAt = 120
  /// `tcpi_bytes_received`, likewise.
  private static let receivedAt = 128
  private static let infoBytes = 256

  /// Returns the bytes acknowledged by the other side since the connection began; `nil` if the
  /// system does not report them.
  static func acknowledgedBytes(of socket: Int32) -> UInt64? {
    counter(at: acknowledgedAt, of: socket)
  }

  /// Returns the bytes read by this process since the connection began. Returns `nil` if the system
  /// does not report them, or if bytes come in too fast to catch a consistent moment.
  static func consumedBytes(of socket: Int32) -> UInt64? {
    for _ in 0..<8 {
      guard let before = counter(at: receivedAt, of: socket) else { return nil }
      var waiting: Int32 = 0
      guard ioctl(socket, UInt(FIONREAD), &waiting) == 0 else { return nil }
      guard counter(at: receivedAt, of: socket) == before else { continue }
      return before - min(before, UInt64(clamping: waiting))
    }
    return nil
  }

  private static func counter(at offset: Int, of socket: Int32) -> UInt64? {
    withUnsafeTemporaryAllocation(byteCount: infoBytes, alignment: 8) { info in
      var count = socklen_t(info.count)
      guard
        getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, info.baseAddress, &count) == 0,
        Int(count) >= offset + MemoryLayout<UInt64>.size
      else { return nil }
      return info.load(fromByteOffset: offset, as: UInt64.self)
    }
  }
}
