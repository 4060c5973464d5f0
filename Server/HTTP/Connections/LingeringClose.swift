import CFerryMicroHTTPD
@preconcurrency import Dispatch
import Glibc

/// The closing of a refused connection after the peer has read the answer.
///
/// Closing a socket with unread input makes the kernel send a reset, which can destroy an answer
/// under way. So input is read and thrown away until the peer closes, for a bounded time and a
/// bounded number of connections.
enum LingeringClose {
  private static let timeLimit = DispatchTimeInterval.seconds(5)
  private static let slots = DispatchSemaphore(value: 128)
  private static let queue = DispatchQueue(label: "ferry.http.lingering-close")

  /// Duplicates `socket`, and the caller goes on to close the original.
  static func begin(_ socket: Int32) {
    guard slots.wait(timeout: .now()) == .success else { return }
    let duplicate = fcntl(socket, F_DUPFD_CLOEXEC, 0)
    guard duplicate >= 0 else {
      slots.signal()
      return
    }
    let source = DispatchSource.makeReadSource(fileDescriptor: duplicate, queue: queue)
    source.setEventHandler { if !discard(from: duplicate) { source.cancel() } }
    source.setCancelHandler {
      close(duplicate)
      slots.signal()
      // A handler with a reference to the source keeps the source alive.
      source.setEventHandler(handler: nil)
      source.setCancelHandler(handler: nil)
    }
    source.activate()
    queue.asyncAfter(deadline: .now() + timeLimit) { source.cancel() }
  }

  /// Reads and discards input; returns `false` if the peer has closed.
  private static func discard(from socket: Int32) -> Bool {
    withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 16) { buffer in
      while true {
        let count = recv(socket, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
        if count > 0 { continue }
        return count < 0 && (errno == EAGAIN || errno == EINTR)
      }
    }
  }
}
