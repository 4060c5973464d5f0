import Foundation
import Synchronization

/// A small HTTP server over POSIX sockets that misbehaves to order: a thread for each connection.
final class RawServer: Sendable {
  enum Event: Hashable {
    case accepted
    case requested(String)
    /// The server is done with a connection after the request for the path.
    case ended(String)
  }

  private struct State {
    var events: [Event] = []
    var waiters: [(event: Event, continuation: CheckedContinuation<Void, Never>)] = []
    var open: Set<Int32> = []
    var isStopped = false
  }

  let port: UInt16
  private let listener: Int32
  private let state = Mutex(State())
  private let beforeBody: @Sendable () -> Void
  private let respond: @Sendable (Exchange) -> Bool

  /// Starts to serve; `respond` returns whether the connection is kept for another request.
  ///
  /// - Parameter beforeBody: runs when a head was read, before any byte of the body is.
  init(
    beforeBody: @escaping @Sendable () -> Void = {},
    _ respond: @escaping @Sendable (Exchange) -> Bool
  ) {
    (self.beforeBody, self.respond) = (beforeBody, respond)
    (listener, port) = Loopback.listen()
    let thread = Thread { [listener, weak self] in
      // The thread alone closes the socket: after another close, `accept` could take a connection of
      // a later server whose socket got the same number.
      defer { close(listener) }
      while true {
        let connection = accept(listener, nil, nil)
        if connection < 0 {
          // `stop` has shut the socket down.
          if errno == EINVAL { return }
          precondition(errno == EINTR || errno == ECONNABORTED, String(cString: strerror(errno)))
          continue
        }
        guard let self else { close(connection); continue }
        _ = fcntl(connection, F_SETFD, FD_CLOEXEC)
        self.serve(connection)
      }
    }
    thread.start()
  }

  deinit { stop() }

  func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

  /// Ends every connection and refuses further ones.
  func stop() {
    state.withLock { state in
      if state.isStopped { return }
      state.isStopped = true
      for connection in state.open { shutdown(connection, Int32(SHUT_RDWR)) }
      shutdown(listener, Int32(SHUT_RDWR))
    }
  }

  /// Returns how often `event` happened so far.
  func count(_ event: Event) -> Int {
    state.withLock { $0.events.count { $0 == event } }
  }

  /// Waits until `event` has happened.
  func happened(_ event: Event) async {
    await withCheckedContinuation { continuation in
      let isPast = state.withLock { state in
        if state.events.contains(event) { return true }
        state.waiters.append((event, continuation))
        return false
      }
      if isPast { continuation.resume() }
    }
  }

  func note(_ event: Event) {
    let waiting = state.withLock { state in
      state.events.append(event)
      defer { state.waiters.removeAll { $0.event == event } }
      return state.waiters.filter { $0.event == event }
    }
    for waiter in waiting { waiter.continuation.resume() }
  }

  private func serve(_ connection: Int32) {
    let isWelcome = state.withLock { state in
      if !state.isStopped { state.open.insert(connection) }
      return !state.isStopped
    }
    guard isWelcome else { close(connection); return }
    note(.accepted)
    let thread = Thread { [self] in
      while let exchange = Exchange(reading: connection, beforeBody: beforeBody) {
        note(.requested(exchange.path))
        if respond(exchange) { continue }
        note(.ended(exchange.path))
        break
      }
      // Under the lock, so `stop` never shuts down a number handed out again.
      state.withLock { state in
        state.open.remove(connection)
        close(connection)
      }
    }
    thread.stackSize = 256 << 10
    thread.start()
  }
}

/// Sockets on 127.0.0.1.
enum Loopback {
  /// Returns a listening socket and the port.
  static func listen() -> (socket: Int32, port: UInt16) {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        precondition(bind(listener, address, length) == 0)
        precondition(Glibc.listen(listener, 1024) == 0)
        precondition(getsockname(listener, address, &length) == 0)
      }
    }
    return (listener, UInt16(bigEndian: address.sin_port))
  }
}
