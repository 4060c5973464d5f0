import FerryProtocol
import Foundation

/// A device with writes to the space of a ``ListenerCrowd``, through one node and the other in
/// turn.
struct CrowdLoad {
  private let nodes: NodePair
  private var device: DeviceLoad
  /// The head after all packets so far; each packet is one sequence.
  private var head: SequenceNumber = 0

  /// The effects of packets sent at a steady pace.
  struct Pace {
    /// Milliseconds from a packet to the event for it, for each packet and listener.
    var lateness: [Double] = []
    /// Events received by the listeners.
    var events = 0
    /// Of both nodes, in seconds.
    var processorTime = 0.0
    var seconds = 0.0
  }

  init(_ nodes: NodePair, seed: UInt64) {
    self.nodes = nodes
    device = DeviceLoad(seed: seed)
  }

  private func client(_ number: Int) -> LoadClient { nodes.clients[number % nodes.clients.count] }

  private func processorTime() throws -> Double {
    try nodes.figures().reduce(0) { $0 + $1.processorTime }
  }

  mutating func send(_ packets: Int) async throws {
    for number in 0..<packets {
      try await client(number).send(device.packet(of: 1).encoded(), to: "crowd")
      head += 1
    }
  }

  /// Sends packets, each when all listeners have received the one before. Returns the times of the
  /// last listener and of the middle one, in milliseconds.
  mutating func broadcasts(
    _ count: Int, to crowd: ListenerCrowd
  ) async throws -> (last: [Double], middle: [Double]) {
    var (last, middle) = ([Double](), [Double]())
    for number in 0..<count {
      let (packet, client) = (device.packet(of: 1).encoded(), client(number))
      head += 1
      let watch = Stopwatch()
      async let sent: Void = client.send(packet, to: "crowd")
      let times = try crowd.wait(forHead: head, since: watch, within: 30)
      try await sent
      last.append(times.percentile(100))
      middle.append(times.percentile(50))
    }
    return (last, middle)
  }

  /// Sends a packet each 20 ms.
  mutating func pace(_ packets: Int, to crowd: ListenerCrowd? = nil) async throws -> Pace {
    let bodies = (0..<packets).map { _ in device.packet(of: 1).encoded() }
    let first = head + 1
    head += SequenceNumber(packets)
    let before = try processorTime()
    let watch = Stopwatch()
    async let sending = send(bodies, watch)
    let arrivals = try crowd?.readEvents(from: first, to: head, watch, within: 120) ?? []
    let sent = try await sending
    var pace = Pace()
    pace.seconds = watch.seconds
    pace.processorTime = try processorTime() - before
    pace.events = arrivals.reduce(0) { $0 + $1.count }
    pace.lateness = arrivals.flatMap { listener in
      listener.flatMap { arrival in arrival.covered.map { arrival.time - sent[$0] } }
    }
    return pace
  }

  /// Returns the time of each packet, in milliseconds.
  private func send(_ bodies: [[UInt8]], _ watch: Stopwatch) async throws -> [Double] {
    var sent: [Double] = []
    for (index, body) in bodies.enumerated() {
      let wait = Double(index) * 0.02 - watch.seconds
      if wait > 0 { try await Task.sleep(for: .seconds(wait)) }
      sent.append(watch.milliseconds)
      try await client(index).send(body, to: "crowd")
    }
    return sent
  }
}
