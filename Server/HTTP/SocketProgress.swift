import Glibc

/// What the system knows of how far a connection is (tcp(7)).
enum SocketProgress {
  /// `tcpi_bytes_acked` of `struct tcp_info` (linux/tcp.h, since Linux 4.1), which glibc's own
  /// header leaves out.
  private static let acknowledgedAt = 120
  private static let infoBytes = 256

  /// Bytes that the other side has acknowledged since the connection began; nil where the system
  /// does not tell.
  static func acknowledgedBytes(of socket: Int32) -> UInt64? {
    withUnsafeTemporaryAllocation(byteCount: infoBytes, alignment: 8) { info in
      var count = socklen_t(info.count)
      guard
        getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, info.baseAddress, &count) == 0,
        Int(count) >= acknowledgedAt + MemoryLayout<UInt64>.size
      else { return nil }
      return info.load(fromByteOffset: acknowledgedAt, as: UInt64.self)
    }
  }
}
