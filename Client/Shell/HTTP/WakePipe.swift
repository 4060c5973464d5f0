import FerryPlatform

/// Wakes a thread waiting for a socket.
final class WakePipe: Sendable {
  private let reading: Int32
  private let writing: Int32

  /// Creates a pipe; `nil` if the process has no free descriptor.
  init?() {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { return nil }
    (reading, writing) = (ends[0], ends[1])
    for end in ends {
      ShellSocket.closeOnExec(end)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
  }

  deinit {
    close(reading)
    close(writing)
  }

  /// Wakes the thread now, or at the next wait.
  func wake() {
    var byte: UInt8 = 0
    // A full pipe wakes as well.
    _ = write(writing, &byte, 1)
  }

  enum Signal: Sendable { case woken, readable, gone, timeout }

  /// Waits for a signal, or for the socket.
  ///
  /// - Parameters:
  ///   - reads: true if bytes of the socket are awaited, too.
  ///   - limit: milliseconds.
  func wait(beside socket: Int32, reads: Bool, limit: Int32) -> Signal {
    var polls = [
      pollfd(fd: reading, events: Int16(POLLIN), revents: 0),
      pollfd(fd: socket, events: reads ? Int16(POLLIN) : 0, revents: 0),
    ]
    let count = poll(&polls, 2, limit)
    if count < 0 { return errno == EINTR ? .woken : .gone }
    if count == 0 { return .timeout }
    if polls[0].revents != 0 {
      var bytes = [UInt8](repeating: 0, count: 64)
      while read(reading, &bytes, bytes.count) > 0 {}
      return .woken
    }
    if polls[1].revents & Int16(POLLIN) != 0 { return .readable }
    return .gone
  }
}
