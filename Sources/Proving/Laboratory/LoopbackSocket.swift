import Foundation

/// Blocking TCP sockets of 127.0.0.1, not inherited by child processes. The caller with a
/// descriptor closes it.
package enum LoopbackSocket {
  private static let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)

  /// Returns a socket that listens on `port`, or on a free one for 0, and the port in use.
  package static func listen(
    port: UInt16 = 0
  ) throws(TestSupportError) -> (descriptor: Int32, port: UInt16) {
    let (descriptor, bound) = try bind(port: port)
    guard Foundation.listen(descriptor, SOMAXCONN) == 0 else {
      let fault = TestSupportError.posix("cannot listen on port \(port)")
      close(descriptor)
      throw fault
    }
    // `accept` holds up the start of processes, so it must never wait.
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    return (descriptor, bound)
  }

  /// Returns a bound socket on `port`, or on a free one for 0, without listening.
  static func bind(
    port: UInt16 = 0
  ) throws(TestSupportError) -> (descriptor: Int32, port: UInt16) {
    let descriptor = try open()
    var yes: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    guard withAddress(port, { Foundation.bind(descriptor, $0, $1) }) == 0 else {
      let fault = TestSupportError.posix("cannot use port \(port)")
      close(descriptor)
      throw fault
    }
    return (descriptor, boundPort(descriptor))
  }

  /// Returns a connection to `port`.
  package static func connect(to port: UInt16) throws(TestSupportError) -> Int32 {
    let descriptor = try open()
    guard withAddress(port, { Foundation.connect(descriptor, $0, $1) }) == 0 else {
      let fault = TestSupportError.posix("cannot connect to port \(port)")
      close(descriptor)
      throw fault
    }
    setNoDelay(descriptor)
    return descriptor
  }

  /// Returns the next connection; `nil` when the listening socket was shut down.
  package static func accept(on listener: Int32) -> Int32? {
    while true {
      var poller = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
      guard poll(&poller, 1, -1) >= 0 || errno == EINTR else { return nil }
      let (descriptor, code) = ProcessSpawner.withoutSpawning {
        let descriptor = Foundation.accept(listener, nil, nil)
        let code = errno
        if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        return (descriptor, code)
      }
      if descriptor >= 0 {
        setNoDelay(descriptor)
        return descriptor
      }
      // A peer gone before it was accepted is no reason to stop.
      guard [EINTR, ECONNABORTED, EAGAIN].contains(code) else { return nil }
    }
  }

  /// Returns some bytes, at most as many as the buffer holds; empty at the end or after a failure.
  package static func read(_ descriptor: Int32, _ buffer: inout [UInt8]) -> ArraySlice<UInt8> {
    while true {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count < 0 && errno == EINTR { continue }
      return buffer[..<max(0, count)]
    }
  }

  /// Sends all bytes; returns `false` if the peer has gone.
  ///
  /// - Parameter sent: Called with the number of bytes taken by the system, as soon as they are.
  package static func write(
    _ descriptor: Int32, _ bytes: ArraySlice<UInt8>, sent: (Int) -> Void = { _ in }
  ) -> Bool {
    let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
    var rest = bytes
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        send(descriptor, $0.baseAddress, $0.count, flags)
      }
      if count < 0 && errno == EINTR { continue }
      if count < 0 && errno == EAGAIN {
        var poller = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard poll(&poller, 1, -1) >= 0 || errno == EINTR else { return false }
        continue
      }
      guard count > 0 else { return false }
      sent(count)
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// Closes a connection with a reset for the peer.
  package static func reset(_ descriptor: Int32) {
    resetOnClose(descriptor)
    close(descriptor)
  }

  /// Bounds the bytes buffered by the system for sending.
  static func limit(sending descriptor: Int32, to bytes: Int) {
    limit(descriptor, SO_SNDBUF, bytes)
  }

  /// Bounds the bytes buffered by the system after they arrived.
  static func limit(receiving descriptor: Int32, to bytes: Int) {
    limit(descriptor, SO_RCVBUF, bytes)
  }

  private static func limit(_ descriptor: Int32, _ option: Int32, _ bytes: Int) {
    // Linux doubles the size, for its own use (socket(7)).
    var half = Int32(bytes / 2)
    setsockopt(descriptor, SOL_SOCKET, option, &half, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Makes a close of the connection a reset for the peer.
  static func resetOnClose(_ descriptor: Int32) {
    var atOnce = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &atOnce, socklen_t(MemoryLayout<linger>.size))
  }

  private static func open() throws(TestSupportError) -> Int32 {
    let descriptor = socket(AF_INET, kind, 0)
    guard descriptor >= 0 else { throw TestSupportError.posix("cannot make a socket") }
    return descriptor
  }

  private static func setNoDelay(_ descriptor: Int32) {
    var yes: Int32 = 1
    setsockopt(
      descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
  }

  private static func boundPort(_ descriptor: Int32) -> UInt16 {
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = getsockname(descriptor, $0, &size)
      }
    }
    return UInt16(bigEndian: address.sin_port)
  }

  private static func withAddress(
    _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}
