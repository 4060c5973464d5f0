import Foundation
import Synchronization

/// The destination of log lines; must not block for long.
package protocol LogSink: Sendable {
  /// Writes one whole line with a newline.
  func write(_ line: [UInt8])
  /// Returns when all lines have left the process, or cannot.
  func flush()
  /// Lines dropped because of a slow reader.
  var droppedLines: Int { get }
}

/// A log on a file descriptor. A separate thread writes the lines, so a paused reader (a full pipe)
/// does not stop the server. At most 4 MiB wait; later lines are dropped and counted. The thread
/// pauses for a few milliseconds after each write, so lines go together under load.
package final class DescriptorLogSink: LogSink {
  private struct State {
    var waiting: [UInt8] = []
    var isWriting = false
    var dropped = 0
    var isClosed = false
  }

  private static let waitingBytesMax = 4 << 20
  private static let pause = DispatchTimeInterval.milliseconds(5)

  private let core = Core()

  /// Shared with the thread, which must not keep the sink alive.
  private final class Core: Sendable {
    let state = Mutex(State())
    let wakeups = DispatchSemaphore(value: 0)
    let written = DispatchSemaphore(value: 0)
    /// Ends a pause.
    let hurry = DispatchSemaphore(value: 0)
  }

  /// - Parameter descriptor: It stays open.
  package init(descriptor: Int32) {
    let core = core
    let thread = Thread { Self.drain(core, to: descriptor) }
    thread.name = "ferryd-log"
    thread.stackSize = 256 << 10
    thread.start()
  }

  deinit {
    core.state.withLock { $0.isClosed = true }
    core.hurry.signal()
    core.wakeups.signal()
  }

  package var droppedLines: Int { core.state.withLock { $0.dropped } }

  package func write(_ line: [UInt8]) {
    let isFirst = core.state.withLock { state -> Bool in
      guard state.waiting.count + line.count <= Self.waitingBytesMax else {
        state.dropped += 1
        return false
      }
      defer { state.waiting += line }
      return state.waiting.isEmpty
    }
    if isFirst { core.wakeups.signal() }
  }

  /// Waits two seconds at most.
  package func flush() {
    let end = DispatchTime.now() + .seconds(2)
    core.hurry.signal()
    while core.state.withLock({ !$0.waiting.isEmpty || $0.isWriting }) {
      guard core.written.wait(timeout: end) == .success else { return }
    }
  }

  private static func drain(_ core: Core, to descriptor: Int32) {
    while true {
      core.wakeups.wait()
      let (lines, isClosed) = core.state.withLock { state in
        defer { state.waiting = [] }
        state.isWriting = !state.waiting.isEmpty
        return (state.waiting, state.isClosed)
      }
      writeFully(lines[...], to: descriptor)
      core.state.withLock { $0.isWriting = false }
      core.written.signal()
      if isClosed { return }
      _ = core.hurry.wait(timeout: .now() + pause)
    }
  }

  /// Gives up if the reader is gone: a log without a reader must not end the server.
  private static func writeFully(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) {
    var rest = bytes
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        var poller = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = poll(&poller, 1, -1)
      } else if errno != EINTR {
        return
      }
    }
  }
}
