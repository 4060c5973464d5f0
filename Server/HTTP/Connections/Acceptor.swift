import Foundation
import Synchronization

/// A thread that accepts connections and hands them on.
///
/// libmicrohttpd could listen itself, but its `MHD_quiesce_daemon` races with its workers, and its
/// thread pool does not spread connections evenly.
final class Acceptor: Sendable {
  private let isStopping = Atomic(false)
  private let listener: ListeningSocket
  private let table: ConnectionTable
  /// Interrupts the thread's poll.
  private let wakeup = Pipe()
  private let ended = DispatchGroup()

  /// `table`: holds the limits; connections beyond them wait in the kernel's queue.
  init(listener: ListeningSocket, table: ConnectionTable) {
    self.listener = listener
    self.table = table
  }

  /// Starts accepting. `take` gets each connection's socket and owns it; it returns `false` if
  /// there will be no `connectionClosed` for it.
  func start(_ take: @escaping @Sendable (Int32, inout SocketAddress) -> Bool) {
    ended.enter()
    let thread = Thread { [self] in
      while acceptNext(take) {}
      close(listener.descriptor)
      ended.leave()
    }
    thread.name = "ferry-accept"
    thread.start()
  }

  /// Records the close of a connection that was handed on.
  func connectionClosed(_ connection: ClientConnection) {
    if table.close(connection) { wake() }
  }

  /// Records the present phase of a connection.
  func connection(_ connection: ClientConnection, isIn phase: ConnectionLedger.Phase) {
    if table.move(connection, to: phase) { wake() }
  }

  /// Stops accepting and waits until the thread has ended and the port is free. Call it once.
  func stop() {
    isStopping.store(true, ordering: .relaxed)
    wake()
    ended.wait()
  }

  /// Waits for one event; returns `false` if it is time to stop.
  private func acceptNext(_ take: (Int32, inout SocketAddress) -> Bool) -> Bool {
    guard !isStopping.load(ordering: .relaxed) else { return false }
    let isFull = table.isFull
    var events = [
      pollfd(fd: wakeup.fileHandleForReading.fileDescriptor, events: Int16(POLLIN), revents: 0),
      // A negative descriptor is ignored.
      pollfd(fd: isFull ? -1 : listener.descriptor, events: Int16(POLLIN), revents: 0),
    ]
    poll(&events, 2, -1)
    if events[0].revents != 0 {
      var marks = [UInt8](repeating: 0, count: 64)
      read(wakeup.fileHandleForReading.fileDescriptor, &marks, marks.count)
    }
    if events[1].revents != 0 { accept(take) }
    return true
  }

  private func wake() {
    _ = write(wakeup.fileHandleForWriting.fileDescriptor, "w", 1)
  }

  private func accept(_ take: (Int32, inout SocketAddress) -> Bool) {
    var peer = SocketAddress()
    let socket = peer.withPointer { Glibc.accept(listener.descriptor, $0, &$1) }
    guard socket >= 0 else {
      // Out of descriptors: the connection stays in the queue, so wait a moment for a free one.
      if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) { usleep(10_000) }
      return
    }
    _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
    guard let connection = table.open(socket, from: peer.ip) else {
      close(socket)
      return
    }
    if !take(socket, &peer) { connectionClosed(connection) }
  }
}
