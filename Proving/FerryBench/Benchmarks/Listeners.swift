import FerryProtocol
import Foundation

extension Benchmark {
  /// Devices that only wait.
  static let listeners = Benchmark(
    name: "listeners",
    summary: "The cost of 1,000 idle listeners for ferryd, and the time to notify all of them."
  ) { context in
    let count = context.size(1_000, quick: 200)
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
    ]
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
