import Glibc

/// A bound, listening, non-blocking TCP socket.
struct ListeningSocket {
  let descriptor: Int32
  /// The port in use, also when 0 was asked for.
  let port: UInt16

  /// Throws `HTTPServerError`. An unspecified IPv6 address takes IPv4 peers too.
  init(address: String, port: UInt16) throws(HTTPServerError) {
    guard var target = SocketAddress(address, port: port) else { throw .badAddress(address) }
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(target.isIPv6 ? AF_INET6 : AF_INET, kind, 0)
    guard descriptor >= 0 else { throw .listen(address, port, code: errno) }
    Self.set(descriptor, SOL_SOCKET, SO_REUSEADDR, 1)
    if target.isIPv6 { Self.set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 0) }
    let bound = target.withPointer { bind(descriptor, $0, $1) }
    guard bound == 0, listen(descriptor, SOMAXCONN) == 0 else {
      let code = errno
      close(descriptor)
      throw .listen(address, port, code: code)
    }
    var actual = SocketAddress()
    _ = actual.withPointer { getsockname(descriptor, $0, &$1) }
    self.descriptor = descriptor
    self.port = actual.port
  }

  private static func set(_ socket: Int32, _ level: Int32, _ option: Int32, _ value: Int32) {
    var value = value
    setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }
}
