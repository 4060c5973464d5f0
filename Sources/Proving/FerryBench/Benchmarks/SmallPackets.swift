import FerryProtocol

extension Benchmark {
  /// The purpose of group commit: many devices, little from each.
  static let smallPackets = Benchmark(
    name: "small-packets",
    summary: "Packets of one operation from 16 devices into one space, each durable when answered."
  ) { context in
    let daemon = try await Daemon.start(database: try context.storeDatabase())
    let raw = try await RawStore(database: try context.makeDatabase(), connections: 1)
    let client = LoadClient(daemon)
    try await client.makeSpace("small")
    let seconds = context.isQuick ? 1.0 : 3.0
    let contest = Contest(
      rounds: context.size(5, quick: 3), context: context)
    context.begin("small-packets", "rounds", total: contest.steps(contestants: 2))
    var devices = (0..<16).map { DeviceLoad(seed: UInt64($0)) }
    var latencies: [Double] = []
    let figures = try await contest.medians([
      {
        let (after, times) = try await send(from: devices, client, for: seconds)
        devices = after
        latencies += times
        return Double(times.count) / seconds
      },
      { Double(try await raw.commitRows(for: seconds)) / seconds },
    ])
    try await daemon.stop()
    let percentiles = [50.0, 99.0, 100.0].map { latencies.percentile($0).rounded(to: 1) }
    return [
      Measurement(
        name: "small packets", figure: Amount(figures[0], .perSecond("packets")),
        raw: Amount(figures[1], .perSecond("commits")), target: .ratioAtLeast(0.6),
        notes: [
          "answered after \(percentiles[0]) ms (p50), \(percentiles[1]) ms (p99), "
            + "\(percentiles[2]) ms at most"
        ])
    ]
  }

  /// Sends one packet after another from each device until the time is over. Returns the devices as
  /// they are afterwards, and the milliseconds of each packet.
  private static func send(
    from devices: [DeviceLoad], _ client: LoadClient, for seconds: Double
  ) async throws -> ([DeviceLoad], [Double]) {
    let watch = Stopwatch()
    return try await withThrowingTaskGroup(of: (Int, DeviceLoad, [Double]).self) { group in
      for (index, device) in devices.enumerated() {
        group.addTask {
          var device = device
          var times: [Double] = []
          while watch.seconds < seconds {
            let body = device.packet(of: 1).encoded()
            let start = Stopwatch()
            try await client.send(body, to: "small")
            times.append(start.milliseconds)
          }
          return (index, device, times)
        }
      }
      var (after, times) = (devices, [Double]())
      for try await (index, device, its) in group {
        after[index] = device
        times += its
      }
      return (after, times)
    }
  }
}
