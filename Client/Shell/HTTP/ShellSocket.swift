import FerryPlatform

/// The calls of the system for sockets on the loopback address.
enum ShellSocket {
  /// Listens on 127.0.0.1, and on no other address.
  ///
  /// - Parameter port: 0 for a free port.
  static func open(port: UInt16) throws(ShellError) -> (descriptor: Int32, port: UInt16) {
    let descriptor = socket(AF_INET, stream, 0)
    guard descriptor >= 0 else { throw .cannotListen(port, reason()) }
    var yes: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    closeOnExec(descriptor)
    setBlocking(descriptor, false)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, size) == 0 && listen(descriptor, 64) == 0
          && getsockname(descriptor, $0, &size) == 0
      }
    }
    guard isBound else {
      let reason = reason()
      Platform.closeDescriptor(descriptor)
      throw .cannotListen(port, reason)
    }
    return (descriptor, UInt16(bigEndian: address.sin_port))
  }

  /// The result of taking a connection.
  enum Next: Sendable, Equatable {
    case connection(Int32)
    /// There is none after all, or not yet.
    case none
    /// The socket does not listen any more.
    case dead
  }

  /// Accepts the next connection, and does not wait for one.
  static func next(_ listener: Int32) -> Next {
    let descriptor = accept(listener, nil, nil)
    if descriptor >= 0 {
      prepare(descriptor)
      return .connection(descriptor)
    }
    switch errno {
    case EINTR, ECONNABORTED, EAGAIN, EWOULDBLOCK: return .none
    case EMFILE, ENFILE, ENOBUFS, ENOMEM:
      usleep(20_000)
      return .none
    default: return .dead
    }
  }

  private static func prepare(_ descriptor: Int32) {
    closeOnExec(descriptor)
    // Darwin's connections inherit the flag of the listening socket.
    setBlocking(descriptor, true)
    var limit = timeval(tv_sec: 30, tv_usec: 0)
    let size = socklen_t(MemoryLayout<timeval>.size)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
    var yes: Int32 = 1
    let length = socklen_t(MemoryLayout<Int32>.size)
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, length)
    #if canImport(Darwin)
      setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &yes, length)
    #endif
  }

  /// Writes all bytes; returns whether the other side took them.
  static func send(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    bytes.withUnsafeBytes { buffer in
      var offset = 0
      while offset < buffer.count {
        let rest = buffer[offset...]
        let count = transmit(descriptor, UnsafeRawBufferPointer(rebasing: rest), flags)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        offset += count
      }
      return true
    }
  }

  static func closeOnExec(_ descriptor: Int32) { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }

  private static func setBlocking(_ descriptor: Int32, _ isBlocking: Bool) {
    let flags = fcntl(descriptor, F_GETFL)
    _ = fcntl(descriptor, F_SETFL, isBlocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK)
  }

  private static func reason() -> String { String(cString: strerror(errno)) }

  private static var stream: Int32 {
    #if canImport(Glibc)
      Int32(SOCK_STREAM.rawValue)
    #else
      SOCK_STREAM
    #endif
  }

  private static var flags: Int32 {
    #if canImport(Darwin)
      0
    #else
      Int32(MSG_NOSIGNAL)
    #endif
  }
}

/// send(2), outside of the type with a method of the same name.
private func transmit(
  _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ flags: Int32
) -> Int {
  send(descriptor, bytes.baseAddress, bytes.count, flags)
}
