import FerryProtocol
import Foundation

/// Many listeners to a space's events, each on a socket of its own, served by one thread.
final class ListenerCrowd {
  private struct Listener {
    let socket: Int32
    /// The end of the bytes read so far, in case an event comes in two pieces.
    var tail: [UInt8] = []
    var head: SequenceNumber = -1
  }

  private var listeners: [Listener] = []

  /// Opens `count` streams and waits until each has answered.
  init(_ count: Int, port: UInt16, space: String) throws {
    let request = Array(
      """
      GET /v1/spaces/\(space)/events HTTP/1.1\r
      Host: 127.0.0.1:\(port)\r
      Accept: text/event-stream\r
      \r

      """.utf8)
    for _ in 0..<count {
      let descriptor = try Self.connect(port)
      listeners.append(Listener(socket: descriptor))
      guard write(descriptor, request, request.count) == request.count else {
        throw BenchError("a listener cannot send: \(String(cString: strerror(errno)))")
      }
    }
    _ = try wait(forHead: 0, within: 30)
  }

  deinit { for listener in listeners { close(listener.socket) } }

  /// Waits until every listener has received `head` or a later one. Returns the time of each,
  /// counted from `start`, in milliseconds.
  func wait(
    forHead head: SequenceNumber, since watch: Stopwatch = Stopwatch(), within seconds: Double
  ) throws -> [Double] {
    var waiting = listeners.indices.filter { listeners[$0].head < head }
    var times: [Double] = []
    while !waiting.isEmpty {
      guard watch.seconds < seconds else {
        throw BenchError("\(waiting.count) of \(listeners.count) listeners received no event")
      }
      var polled = waiting.map {
        pollfd(fd: listeners[$0].socket, events: Int16(POLLIN), revents: 0)
      }
      guard poll(&polled, nfds_t(polled.count), 1_000) > 0 else { continue }
      for (slot, index) in zip(polled, waiting) where slot.revents != 0 {
        try read(index)
        if listeners[index].head >= head { times.append(watch.milliseconds) }
      }
      waiting.removeAll { listeners[$0].head >= head }
    }
    return times
  }

  /// The arrival of an event at a listener.
  struct Arrival {
    /// In milliseconds.
    let time: Double
    /// The packets, counted from 0, that it is the first to cover.
    let covered: Range<Int>
  }

  /// Reads all events until every listener has received `last`. Each packet is one sequence.
  func follow(
    from first: SequenceNumber, to last: SequenceNumber, _ watch: Stopwatch, within seconds: Double
  ) throws -> [[Arrival]] {
    var arrivals = [[Arrival]](repeating: [], count: listeners.count)
    while listeners.contains(where: { $0.head < last }) {
      guard watch.seconds < seconds else { throw BenchError("listeners received no event") }
      var polled = listeners.map { pollfd(fd: $0.socket, events: Int16(POLLIN), revents: 0) }
      guard poll(&polled, nfds_t(polled.count), 1_000) > 0 else { continue }
      for index in polled.indices where polled[index].revents != 0 {
        let before = max(listeners[index].head, first - 1)
        try read(index)
        let now = listeners[index].head
        guard now > before else { continue }
        arrivals[index].append(
          Arrival(
            time: watch.milliseconds, covered: Int(before - first + 1)..<Int(now - first + 1)))
      }
    }
    return arrivals
  }

  private func read(_ index: Int) throws {
    var buffer = [UInt8](repeating: 0, count: 4_096)
    let count = Foundation.read(listeners[index].socket, &buffer, buffer.count)
    guard count > 0 else { throw BenchError("ferryd ended a stream of events") }
    let text = listeners[index].tail + buffer[..<count]
    for line in text.split(separator: UInt8(ascii: "\n")) {
      guard line.starts(with: Array("id:".utf8)) else { continue }
      let value = String(decoding: line.dropFirst(3), as: UTF8.self)
      let number = SequenceNumber(value.trimmingCharacters(in: .whitespaces))
      listeners[index].head = max(listeners[index].head, number ?? -1)
    }
    listeners[index].tail = Array(text.suffix(256))
  }

  private static func connect(_ port: UInt16) throws -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    let code = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Foundation.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard descriptor >= 0, code == 0 else {
      throw BenchError("a listener cannot connect: \(String(cString: strerror(errno)))")
    }
    return descriptor
  }
}
