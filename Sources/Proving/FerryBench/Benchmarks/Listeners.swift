import FerryProtocol
import Foundation

extension Benchmark {
  /// Devices that only wait.
  static let listeners = Benchmark(
    name: "listeners",
    summary: """
      The cost of 10,000 listeners for two nodes: idle, and with 50 packets a second into their \
      space; and the cost of packets that a node need not hear of.
      """
  ) { context in
    let count = context.size(10_000, quick: 400)
    let nodes = try await NodePair.start(
      database: try context.makeDatabase(), connections: count / 2 + 256)
    try raiseDescriptorLimit(to: count + 512)
    var results = [try await Self.unneeded(nodes, context)]
    try await nodes.clients[0].makeSpace("crowd")
    var load = CrowdLoad(nodes, seed: 5)
    try await load.send(1)
    let alone = try await load.pace(context.size(500, quick: 50)).processorTime

    let before = try nodes.figures()
    let crowd = try ListenerCrowd(count, ports: nodes.ports, space: "crowd")
    results.append(try await Self.idle(crowd, nodes, before, context))
    let (last, middle) = try await load.broadcasts(context.size(20, quick: 5), to: crowd)
    let busy = try await load.pace(context.size(500, quick: 50), to: crowd)
    crowd.close()
    try await nodes.stop()
    let raw = try RawBroadcast.measure(
      listeners: count / 2, broadcasts: context.size(20, quick: 5))
    let telling = busy.processorTime - alone
    let packets = "50 packets a second"
    return results + [
      Measurement(
        name: "listeners, all notified", figure: Amount(last.percentile(50), .milliseconds),
        raw: Amount(raw.last, .milliseconds),
        notes: [
          "from the packet to the event of the last of \(count) listeners; half of them within "
            + "\(middle.percentile(50).rounded(to: 1)) ms. Raw: one thread sends to "
            + "\(count / 2) sockets, a node's part"
        ]),
      Measurement(
        name: "listeners, \(packets)",
        figure: Amount(busy.lateness.percentile(99), .milliseconds), target: .atMost(1_000),
        notes: [
          "from a packet to an event that covers it, 99 % of \(count) listeners; 50 % within "
            + "\(busy.lateness.percentile(50).rounded(to: 1)) ms, all within "
            + "\(busy.lateness.percentile(100).rounded(to: 1)) ms"
        ]),
      Measurement(
        name: "listeners, notifying, \(packets)",
        figure: Amount(telling / busy.seconds * 100, .percent), target: .atMost(50),
        notes: [
          "of one processor, both nodes together, without the "
            + "\((alone / busy.seconds * 100).rounded(to: 1)) % that the packets cost without "
            + "listeners"
        ]),
      Measurement(
        name: "listeners, an event",
        figure: Amount(telling * 1e6 / Double(busy.events), .microseconds(per: "event")),
        raw: Amount(raw.processorTime * 1e6, .microseconds(per: "event")),
        notes: ["processor time. Raw: send(2) of the same bytes in a loop"]),
    ]
  }

  /// Measures packets through one node into a space not needed by the other, and the same with a
  /// listener there.
  private static func unneeded(
    _ nodes: NodePair, _ context: BenchmarkContext
  ) async throws -> Measurement {
    try await nodes.clients[0].makeSpace("elsewhere")
    let each = context.size(400, quick: 20)
    var devices = (0..<16).map { DeviceLoad(seed: 900 + UInt64($0)) }
    func run() async throws -> (time: Double, notifications: Int) {
      let packets = devices.indices.map { index in
        (
          space: "elsewhere",
          packets: (0..<each).map { _ in devices[index].packet(of: 1).encoded() }
        )
      }
      let before = try nodes.figures()[1].processorTime
      let heard = try await nodes.clients[1].metric("ferry_notifications_total")
      try await nodes.clients[0].send(packets)
      return (
        try nodes.figures()[1].processorTime - before,
        try await nodes.clients[1].metric("ferry_notifications_total") - heard
      )
    }
    context.begin("listeners", "runs", total: 2)
    let without = try await run()
    context.advance()
    let listener = try ListenerCrowd(1, ports: [nodes.ports[1]], space: "elsewhere")
    let with = try await run()
    context.advance()
    listener.close()
    let count = Double(each * devices.count)
    return Measurement(
      name: "packets through another node",
      figure: Amount(without.time * 1e6 / count, .microseconds(per: "packet")),
      raw: Amount(with.time * 1e6 / count, .microseconds(per: "packet")),
      notes: [
        "processor time of a node without listeners to their space, which received "
          + "\(without.notifications) notifications. Raw: with one listener, "
          + "\(with.notifications) notifications"
      ])
  }

  private static func idle(
    _ crowd: ListenerCrowd, _ nodes: NodePair, _ before: [ProcessFigures],
    _ context: BenchmarkContext
  ) async throws -> Measurement {
    let seconds = context.size(10, quick: 3)
    let start = try nodes.figures()
    context.begin("listeners", "seconds", total: seconds)
    for _ in 0..<seconds {
      try await Task.sleep(for: .seconds(1))
      context.advance()
    }
    let end = try nodes.figures()
    let share = (end.processorTime - start.processorTime) / Double(seconds) * 100
    let each = max(0, end.resident - before.resident) / crowd.count
    return Measurement(
      name: "listeners, memory", figure: Amount(Double(end.resident), .bytes),
      notes: [
        "two nodes with \(crowd.count) idle listeners: \(each >> 10) KiB for each, "
          + "\(share.rounded(to: 2)) % of one processor over \(seconds) s"
      ])
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

extension [ProcessFigures] {
  fileprivate var processorTime: Double { reduce(0) { $0 + $1.processorTime } }
  fileprivate var resident: Int { reduce(0) { $0 + $1.resident } }
}
