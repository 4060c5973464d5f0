import CFerryMicroHTTPD
import Glibc
import Synchronization

/// A connection of libmicrohttpd.
struct ConnectionHandle: @unchecked Sendable {
  // SAFETY: only MHD_resume_connection is called with it off its own thread, which libmicrohttpd
  // allows while the connection is suspended.
  let pointer: OpaquePointer
}

/// The exchanges in progress, and their suspended connections.
///
/// The lock makes sure that each suspension has exactly one resume, and that no suspension follows
/// `close`. libmicrohttpd aborts the process if it is stopped with a suspended connection.
final class ConnectionRegistry: Sendable {
  private struct Entry {
    let exchange: Exchange
    let socket: Int32
    var suspended: ConnectionHandle?

    @discardableResult
    mutating func resume() -> Bool {
      guard let connection = suspended.take() else { return false }
      MHD_resume_connection(connection.pointer)
      return true
    }
  }

  private struct State {
    var entries: [ObjectIdentifier: Entry] = [:]
    var isClosed = false
    var hasGivenUp = false
    var whenEmpty: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  func insert(_ exchange: Exchange, socket: Int32) {
    state.withLock {
      $0.entries[ObjectIdentifier(exchange)] = Entry(exchange: exchange, socket: socket)
    }
  }

  /// Forgets an exchange; the socket may be closed afterwards.
  func remove(_ exchange: Exchange) {
    let waiter = state.withLock { state in
      state.entries[ObjectIdentifier(exchange)] = nil
      return state.entries.isEmpty ? state.whenEmpty.take() : nil
    }
    waiter?.resume()
  }

  /// Suspends the exchange's connection, on the connection's thread; returns `false` once closed.
  func suspend(_ exchange: Exchange, _ connection: ConnectionHandle) -> Bool {
    state.withLock { state in
      guard !state.isClosed else { return false }
      state.entries[ObjectIdentifier(exchange)]?.suspended = connection
      MHD_suspend_connection(connection.pointer)
      return true
    }
  }

  /// Resumes the exchange's connection; returns `false` if it was not suspended.
  @discardableResult
  func resume(_ exchange: Exchange) -> Bool {
    state.withLock { $0.entries[ObjectIdentifier(exchange)]?.resume() ?? false }
  }

  /// Resets the exchange's connection, in any state.
  func disconnect(_ exchange: Exchange) {
    state.withLock { state in
      guard let socket = state.entries[ObjectIdentifier(exchange)]?.socket else { return }
      SocketReset.begin(socket)
      state.entries[ObjectIdentifier(exchange)]?.resume()
    }
  }

  /// All exchanges in progress.
  var exchanges: [Exchange] {
    state.withLock { $0.entries.values.map(\.exchange) }
  }

  /// Returns when nothing is in progress, or when `giveUpWaiting` is called.
  func waitUntilEmpty() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        let isOver = state.entries.isEmpty || state.hasGivenUp
        if !isOver { state.whenEmpty = continuation }
        return isOver
      }
      if isOver { continuation.resume() }
    }
  }

  /// Ends the wait for emptiness, now or as soon as it begins.
  func stopWaiting() {
    let waiter = state.withLock { state in
      state.hasGivenUp = true
      return state.whenEmpty.take()
    }
    waiter?.resume()
  }

  /// Resumes every suspended connection and allows no suspension from now on.
  func close() {
    state.withLock { state in
      state.isClosed = true
      for key in state.entries.keys { state.entries[key]?.resume() }
    }
  }
}
