import Foundation

/// A pipe to wake a thread out of `poll`.
package final class WakePipe: Sendable {
  private let reader: Int32
  private let writer: Int32

  package init() throws(PostgresError) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else {
      let reason = String(cString: strerror(errno))
      throw PostgresError(.connectionFailed, "cannot create a pipe: \(reason)")
    }
    (reader, writer) = (ends[0], ends[1])
    for end in ends where end >= 0 {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
  }

  deinit {
    close(reader)
    close(writer)
  }

  /// Wakes the waiting thread, and every later wait until ``drain()``. It never blocks: a full pipe
  /// wakes as well.
  package func wake() {
    var byte: UInt8 = 1
    _ = write(writer, &byte, 1)
  }

  /// Resets the pipe. Look at the reason of the wake-up after the call, not before.
  package func drain() {
    var bytes = [UInt8](repeating: 0, count: 256)
    while read(reader, &bytes, bytes.count) > 0 {}
  }

  package enum Outcome { case woken, ready, timedOut }

  /// Waits for the socket, a wake-up or the time. A negative descriptor waits for the others only;
  /// nil waits for ever.
  package func wait(for descriptor: Int32 = -1, events: Int32 = 0, timeout: Duration?) -> Outcome {
    var descriptors = [
      pollfd(fd: reader, events: Int16(POLLIN), revents: 0),
      pollfd(fd: descriptor, events: Int16(events), revents: 0),
    ]
    let clock = ContinuousClock()
    let deadline = timeout.map { clock.now + $0 }
    while true {
      let left = deadline.map { max(.zero, $0 - clock.now) }
      let ready = poll(&descriptors, 2, left.map(\.wholeMilliseconds) ?? -1)
      if descriptors[0].revents != 0 { return .woken }
      if ready > 0 { return .ready }
      if let deadline, clock.now >= deadline { return .timedOut }
    }
  }
}

extension Duration {
  /// Rounded up, so a wait is never too short.
  var wholeMilliseconds: Int32 {
    let (seconds, attoseconds) = components
    let (fraction, isPartial) = attoseconds.quotientAndRemainder(
      dividingBy: 1_000_000_000_000_000)
    return Int32(clamping: seconds * 1000 + fraction + (isPartial > 0 ? 1 : 0))
  }
}
