import FerryProtocol
import Foundation

/// Many listeners to a space's events, each on a separate socket, served by one thread.
final class ListenerCrowd {
  private struct Listener {
    let socket: Int32
    var reader = EventReader()
  }

  private var listeners: [Listener] = []
  /// Of each listener, by number.
  private var polled: [pollfd] = []
  private var buffer = [UInt8](repeating: 0, count: 16 << 10)

  var count: Int { listeners.count }

  /// Opens `count` streams, in turn to each port, and waits until each has received a head.
  init(_ count: Int, ports: [UInt16], space: String) throws {
    for number in 0..<count {
      let port = ports[number % ports.count]
      let descriptor = try Self.connect(port)
      listeners.append(Listener(socket: descriptor))
      polled.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
      let request = Self.request(port, space)
      guard write(descriptor, request, request.count) == request.count
      else { throw BenchError("a listener cannot send: \(String(cString: strerror(errno)))") }
      // Like devices that come one after another: a server refuses thousands of requests at once.
      if listeners.count.isMultiple(of: 64) || listeners.count == count {
        _ = try wait(forHead: 0, within: 120)
      }
    }
  }

  deinit { close() }

  /// Ends all streams.
  func close() {
    for listener in listeners { Foundation.close(listener.socket) }
    (listeners, polled) = ([], [])
  }

  /// Waits until every listener has received `head` or a later one. Returns the time of each,
  /// counted from `start`, in milliseconds.
  func wait(
    forHead head: SequenceNumber, since watch: Stopwatch = Stopwatch(), within seconds: Double
  ) throws -> [Double] {
    var waiting = listeners.count { $0.reader.head < head }
    var times: [Double] = []
    while waiting > 0 {
      guard watch.seconds < seconds else {
        throw BenchError("\(waiting) of \(listeners.count) listeners received no event")
      }
      for index in nextReady() {
        let before = listeners[index].reader.head
        try read(index)
        guard before < head, listeners[index].reader.head >= head else { continue }
        times.append(watch.milliseconds)
        waiting -= 1
      }
    }
    return times
  }

  /// The arrival of an event at a listener.
  struct Arrival {
    /// In milliseconds.
    let time: Double
    /// The packets first covered by it, counted from 0.
    let covered: Range<Int>
  }

  /// Reads all events until every listener has received `last`. Each packet is one sequence.
  func readEvents(
    from first: SequenceNumber, to last: SequenceNumber, _ watch: Stopwatch, within seconds: Double
  ) throws -> [[Arrival]] {
    var arrivals = [[Arrival]](repeating: [], count: listeners.count)
    var waiting = listeners.count { $0.reader.head < last }
    while waiting > 0 {
      guard watch.seconds < seconds else { throw BenchError("listeners received no event") }
      for index in nextReady() {
        let before = max(listeners[index].reader.head, first - 1)
        try read(index)
        let now = listeners[index].reader.head
        guard now > before else { continue }
        arrivals[index].append(
          Arrival(
            time: watch.milliseconds, covered: Int(before - first + 1)..<Int(now - first + 1)))
        if before < last, now >= last { waiting -= 1 }
      }
    }
    return arrivals
  }

  /// Returns the readable listeners; none after a second.
  private func nextReady() -> [Int] {
    guard poll(&polled, nfds_t(polled.count), 1_000) > 0 else { return [] }
    return polled.indices.filter { polled[$0].revents != 0 }
  }

  private func read(_ index: Int) throws {
    let count = Foundation.read(listeners[index].socket, &buffer, buffer.count)
    guard count > 0 else { throw BenchError("the server ended a stream of events") }
    listeners[index].reader.parse(buffer[..<count])
  }

  private static func request(_ port: UInt16, _ space: String) -> [UInt8] {
    Array(
      """
      GET /v1/spaces/\(space)/events HTTP/1.1\r
      Host: 127.0.0.1:\(port)\r
      Accept: text/event-stream\r
      \r

      """.utf8)
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

/// Finds the heads in a stream of events, whatever pieces it comes in.
struct EventReader {
  /// The newest head so far; -1 before the first.
  private(set) var head: SequenceNumber = -1
  /// The place in the present line, as far as the line can still name a head.
  private var place = Place.start(0)
  private static let name = Array("id: ".utf8)

  private enum Place {
    /// So many bytes of `id: ` were read.
    case start(Int)
    case number(SequenceNumber)
    case rest
  }

  mutating func parse(_ bytes: ArraySlice<UInt8>) {
    for byte in bytes {
      switch place {
      case .number(let number) where byte == UInt8(ascii: "\n"):
        head = max(head, number)
        place = .start(0)
      case _ where byte == UInt8(ascii: "\n"): place = .start(0)
      case .start(let count) where byte == Self.name[count]:
        place = count + 1 == Self.name.count ? .number(0) : .start(count + 1)
      case .number(let number) where (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte):
        place = .number(number &* 10 &+ SequenceNumber(byte - UInt8(ascii: "0")))
      default: place = .rest
      }
    }
  }
}
