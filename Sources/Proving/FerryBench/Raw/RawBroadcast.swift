import FerryLaboratory
import Foundation

/// The minimum for notifying listeners: one thread that sends the same bytes to each socket.
// SAFETY: The thread that accepts fills `sockets` before it signals `accepted`; afterwards nothing
// changes them.
final class RawBroadcast: @unchecked Sendable {
  private var sockets: [Int32] = []
  private let accepted = DispatchSemaphore(value: 0)
  private let listener: Int32
  private let port: UInt16

  private init(_ count: Int) throws {
    (listener, port) = try LoopbackSocket.listen()
    Thread.detachNewThread { [self] in
      while sockets.count < count, let socket = LoopbackSocket.accept(on: listener) {
        sockets.append(socket)
        Self.send(0, to: socket)
      }
      accepted.signal()
    }
  }

  deinit {
    for socket in sockets { close(socket) }
    close(listener)
  }

  /// Returns the median time until the last listener has received an event, in milliseconds, and
  /// the processor time for each event, in seconds.
  static func measure(
    listeners: Int, broadcasts: Int
  ) throws -> (last: Double, processorTime: Double) {
    let server = try RawBroadcast(listeners)
    let crowd = try ListenerCrowd(listeners, ports: [server.port], space: "raw")
    server.accepted.wait()
    var last: [Double] = []
    let spent = Spent()
    for number in 1...broadcasts {
      let watch = Stopwatch()
      let done = DispatchSemaphore(value: 0)
      Thread.detachNewThread {
        let start = threadTime()
        for socket in server.sockets { send(number, to: socket) }
        spent.seconds += threadTime() - start
        done.signal()
      }
      last.append(
        try crowd.wait(forHead: Int64(number), since: watch, within: 30).percentile(100))
      done.wait()
    }
    crowd.close()
    return (last.percentile(50), spent.seconds / Double(listeners * broadcasts))
  }

  // SAFETY: One thread at a time has it: each is waited for.
  private final class Spent: @unchecked Sendable {
    var seconds = 0.0
  }

  private static func send(_ number: Int, to socket: Int32) {
    let event = """
      4f\r
      id: \(number)
      event: head
      data: {"epoch":"0000000000000007","head":"\(number)"}

      \r

      """
    let bytes = Array(event.utf8)
    _ = Foundation.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  private static func threadTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
