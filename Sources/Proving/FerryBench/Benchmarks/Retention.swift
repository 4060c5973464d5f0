import FerryLaboratory
import FerryProtocol
import Foundation

extension Benchmark {
  /// The size of a store after many updates of few records, against one with only these records,
  /// and the effect of pruning on a writer.
  static let retention = Benchmark(
    name: "retention",
    summary:
      "The size of each store after --updates updates of 10,000 records with pruning."
  ) { context in
    let directory = try TemporaryDirectory()
    let embedded = RetentionBench(name: "embedded store", context: context) {
      .embedded(directory: directory.file(UUID().uuidString).path)
    }
    let postgres = RetentionBench(name: "PostgreSQL", context: context) {
      .postgres(try context.makeDatabase())
    }
    let chosen = [("embedded", embedded), ("postgres", postgres)].filter { name, _ in
      context.store == nil || context.store == name
    }
    var measurements: [Measurement] = []
    for (_, bench) in chosen { measurements += try await bench.run() }
    return measurements
  }
}

/// One kind of store, filled, written to and pruned by real processes.
private struct RetentionBench {
  private static let space = "retention"
  private static let records = 10_000
  /// Operations in a packet of the load, and in one of the timed writer.
  private static let (perPacket, perTimedPacket) = (1_000, 10)
  private static let devices = 5
  /// Rows from which on the server releases disk space if it keeps almost no history.
  private static let reclaimedRows = 10_000

  let name: String
  let context: BenchmarkContext
  let makeStore: () throws -> BenchStore

  func run() async throws -> [Measurement] {
    let updates = context.updates ?? context.size(1_000_000, quick: 100_000)
    context.begin("retention, \(name)", "operations", total: updates + 2 * Self.records)
    let live = try await bytesOfLiveData()
    let pruned = try await prune(updates: updates)
    let (before, meanwhile) = (pruned.before.percentile(99), pruned.meanwhile.percentile(99))
    return [
      Measurement(
        name: "retention, \(name)", figure: Amount(pruned.bytes, .bytes), raw: Amount(live, .bytes),
        target: .ratioAtMost(2),
        notes: [
          "\(updates.grouped) updates at "
            + Amount(Double(updates) / pruned.filling, .perSecond("operations")).text
            + ", \(Amount(pruned.bytesBefore, .bytes).text) before pruning, which took "
            + "\(pruned.pruning.rounded(to: 1)) s"
        ]),
      Measurement(
        name: "a writer during pruning, \(name)", figure: Amount(meanwhile, .milliseconds),
        raw: Amount(before, .milliseconds),
        notes: [
          "p99 of packets of \(Self.perTimedPacket) updates, one after another; at most "
            + "\((pruned.meanwhile.max() ?? 0).rounded(to: 1)) ms while pruning, "
            + "\((pruned.before.max() ?? 0).rounded(to: 1)) ms before; p50 "
            + "\(pruned.meanwhile.percentile(50).rounded(to: 1)) ms and "
            + "\(pruned.before.percentile(50).rounded(to: 1)) ms"
        ]),
    ]
  }

  /// Returns the bytes of a store after it received the records and pruned their history.
  private func bytesOfLiveData() async throws -> Double {
    let store = try makeStore()
    let daemon = try await Daemon.start(store: store.arguments)
    _ = try await fill(daemon, updates: 0)
    try await store.space(["prune", Self.space, "--older-than", "0s"])
    try await daemon.stop()
    return try await store.bytes()
  }

  private struct Pruned {
    var bytesBefore: Double
    var bytes: Double
    /// Seconds.
    var filling: Double
    var pruning: Double
    /// Milliseconds of each timed packet before the pruning, and during it.
    var before: [Double]
    var meanwhile: [Double]
  }

  /// Prunes the updates of a filled store. It keeps everything while the store is filled. Then the
  /// retention becomes a second, and the server's own pruner works while a device continues to
  /// write.
  private func prune(updates: Int) async throws -> Pruned {
    let store = try makeStore()
    let daemon = try await Daemon.start(store: store.arguments + ["--prune-interval", "1s"])
    var watch = Stopwatch()
    let (loads, filled) = try await fill(daemon, updates: updates)
    let filling = watch.seconds
    let bytesBefore = try await store.bytes()

    var writer = TimedWriter(load: loads[0], perPacket: Self.perTimedPacket, space: Self.space)
    let client = LoadClient(daemon)
    let quiet = Stopwatch()
    let seconds = context.isQuick ? 2.0 : 5.0
    let before = try await writer.write(client) { quiet.seconds < seconds }
    watch = Stopwatch()
    try await store.space(["set", Self.space, "--retention", "1s"])
    let meanwhile = try await writer.write(client) {
      let pruned = try await client.pruned()
      return pruned.operations < filled || pruned.unreclaimed >= Self.reclaimedRows
    }
    let pruning = watch.seconds
    // The writer's operations grow older than a second, too; the newest operation stays.
    let all = filled + (before.count + meanwhile.count) * Self.perTimedPacket
    while try await client.pruned().operations < all - 1 {
      try await Task.sleep(for: .milliseconds(100))
    }
    try await daemon.stop()
    return Pruned(
      bytesBefore: bytesBefore, bytes: try await store.bytes(), filling: filling,
      pruning: pruning, before: before, meanwhile: meanwhile)
  }

  /// Makes the records and updates them, from several devices at once. Returns the devices and the
  /// number of operations.
  private func fill(
    _ daemon: Daemon, updates: Int
  ) async throws -> (loads: [UpdateLoad], operations: Int) {
    let (client, context) = (LoadClient(daemon), context)
    try await client.makeSpace(Self.space)
    let packets = (Self.records + updates) / Self.devices / Self.perPacket
    let loads = try await withThrowingTaskGroup(of: (Int, UpdateLoad).self) { group in
      for device in 0..<Self.devices {
        group.addTask {
          var load = UpdateLoad(seed: UInt64(device), records: Self.records / Self.devices)
          for _ in 0..<packets {
            try await client.send(load.packet(of: Self.perPacket).encoded(), to: Self.space)
            context.advance(by: Self.perPacket)
          }
          return (device, load)
        }
      }
      return try await group.reduce(into: [(Int, UpdateLoad)]()) { $0.append($1) }
    }
    return (loads.sorted { $0.0 < $1.0 }.map(\.1), packets * Self.devices * Self.perPacket)
  }
}

/// A device whose packets are timed.
private struct TimedWriter {
  var load: UpdateLoad
  let perPacket: Int
  let space: String

  /// Sends one packet after another until the caller stops it; it checks for a stop every 50
  /// packets. Returns the milliseconds of each packet.
  mutating func write(
    _ client: LoadClient, while goesOn: () async throws -> Bool
  ) async throws -> [Double] {
    var times: [Double] = []
    while try await goesOn() {
      for _ in 0..<50 {
        let body = load.packet(of: perPacket).encoded()
        let watch = Stopwatch()
        try await client.send(body, to: space)
        times.append(watch.milliseconds)
      }
    }
    return times
  }
}
