import FerryProtocol
import Foundation

extension Benchmark {
  /// Devices that only wait.
  static let listeners = Benchmark(
    name: "listeners",
    summary: """
      The cost of 5,000 listeners for ferryd: idle, and with 50 packets a second into their space.
      """
  ) { context in
    let count = context.size(5_000, quick: 200)
    let seconds = context.size(10, quick: 3)
    let daemon = try await Daemon.start(database: try context.makeDatabase())
    guard let port = daemon.url.split(separator: ":").last.flatMap({ UInt16($0) }) else {
      throw BenchError("no port in \(daemon.url)")
    }
    let client = LoadClient(daemon)
    try await client.makeSpace("crowd")
    var device = DeviceLoad(seed: 5)
    try await client.send(device.packet(of: 1).encoded(), to: "crowd")
    try raiseDescriptorLimit(to: count + 256)

    let before = try ProcessFigures.read(daemon.processID)
    let crowd = try ListenerCrowd(count, port: port, space: "crowd")
    let start = try ProcessFigures.read(daemon.processID)
    context.begin("listeners", "seconds", total: seconds)
    for _ in 0..<seconds {
      try await Task.sleep(for: .seconds(1))
      context.advance()
    }
    let end = try ProcessFigures.read(daemon.processID)
    var (last, middle) = ([Double](), [Double]())
    for event in 0..<context.size(20, quick: 5) {
      let packet = device.packet(of: 1).encoded()
      let watch = Stopwatch()
      async let sent: Void = client.send(packet, to: "crowd")
      let times = try crowd.wait(forHead: Int64(event) + 2, since: watch, within: 30)
      try await sent
      last.append(times.percentile(100))
      middle.append(times.percentile(50))
    }
    let busy = try await Self.tell(
      crowd, packets: context.size(500, quick: 50), from: Int64(last.count) + 2, by: &device,
      with: client, daemon)
    try await daemon.stop()
    let share = (end.processorTime - start.processorTime) / Double(seconds) * 100
    let each = max(0, end.resident - before.resident) / count
    return [
      Measurement(
        name: "listeners, memory", figure: Amount(Double(end.resident), .bytes),
        notes: [
          "ferryd with \(count) idle listeners: \(each >> 10) KiB for each, "
            + "\(share.rounded(to: 2)) % of one processor over \(seconds) s"
        ]),
      Measurement(
        name: "listeners, all notified", figure: Amount(last.percentile(50), .milliseconds),
        notes: [
          "from the packet to the event of the last of \(count) listeners; half of them within "
            + "\(middle.percentile(50).rounded(to: 1)) ms"
        ]),
      Measurement(
        name: "listeners, 50 packets a second",
        figure: Amount(busy.lateness.percentile(99), .milliseconds),
        notes: [
          "from a packet to an event that covers it, 99 % of \(count) listeners; ferryd used "
            + "\((busy.share * 100).rounded(to: 1)) % of one processor, with the packets"
        ]),
    ]
  }

  /// Sends a packet each 20 ms. Returns how late each listener learnt of each packet, in
  /// milliseconds, and the server's share of one processor.
  private static func tell(
    _ crowd: ListenerCrowd, packets: Int, from first: SequenceNumber, by device: inout DeviceLoad,
    with client: LoadClient, _ daemon: Daemon
  ) async throws -> (lateness: [Double], share: Double) {
    let watch = Stopwatch()
    let before = try ProcessFigures.read(daemon.processID)
    let bodies = (0..<packets).map { _ in device.packet(of: 1).encoded() }
    async let sending = Self.send(bodies, watch, with: client)
    let arrivals = try crowd.follow(
      from: first, to: first + SequenceNumber(packets) - 1, watch, within: 120)
    let sent = try await sending
    let after = try ProcessFigures.read(daemon.processID)
    let share = (after.processorTime - before.processorTime) / watch.seconds
    let lateness = arrivals.flatMap { listener in
      listener.flatMap { arrival in arrival.covered.map { arrival.time - sent[$0] } }
    }
    return (lateness, share)
  }

  /// Returns the time of each packet, in milliseconds.
  private static func send(
    _ bodies: [[UInt8]], _ watch: Stopwatch, with client: LoadClient
  ) async throws -> [Double] {
    var sent: [Double] = []
    for (index, body) in bodies.enumerated() {
      let wait = Double(index) * 0.02 - watch.seconds
      if wait > 0 { try await Task.sleep(for: .seconds(wait)) }
      sent.append(watch.milliseconds)
      try await client.send(body, to: "crowd")
    }
    return sent
  }

  private static func raiseDescriptorLimit(to wanted: Int) throws {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    guard limit.rlim_cur < rlim_t(wanted) else { return }
    limit.rlim_cur = min(limit.rlim_max, rlim_t(wanted))
    guard limit.rlim_cur >= rlim_t(wanted),
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
    else { throw BenchError("\(wanted) open files are not allowed here; raise `ulimit -n`") }
  }
}
