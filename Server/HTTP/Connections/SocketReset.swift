import CFerryMicroHTTPD
import Glibc

/// The reset of a connection, in any state. The owner goes on to close the socket.
enum SocketReset {
  static func begin(_ socket: Int32) {
    // Discards the bytes in the kernel for a reader that does not read.
    var abandon = linger(l_onoff: 1, l_linger: 0)
    setsockopt(
      socket, SOL_SOCKET, SO_LINGER, &abandon, socklen_t(MemoryLayout<linger>.size))
    shutdown(socket, Int32(SHUT_RDWR))
  }
}
