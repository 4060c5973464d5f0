import Ferry
import FerryLaboratory
import FerryProtocol
import Foundation

extension Benchmark {
  /// The processor time of a sync without any work, on a large replica.
  static let idleSync = Benchmark(
    name: "idle-sync",
    summary: "Processor time of a sync with nothing to exchange, on a replica with many rows."
  ) { context in
    let (rows, syncs) = (context.size(1_000_000, quick: 50_000), context.size(500, quick: 100))
    let daemon = try await Daemon.start(database: try context.makeDatabase())
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    context.begin("idle-sync", "replicas", total: 2)
    let small = try await replica(directory.file("small.db").path, rows: 1_000, daemon)
    let least = try await idleTime(of: small, syncs: syncs)
    context.advance()
    let large = try await replica(directory.file("large.db").path, rows: rows, daemon)
    let time = try await idleTime(of: large, syncs: syncs)
    context.advance()
    try await daemon.stop()
    return [
      Measurement(
        name: "idle sync", figure: Amount(time, .milliseconds), target: .atMost(5),
        notes: [
          "of the device's processor, \(rows.grouped) rows, \(syncs) syncs; "
            + "\(least.rounded(to: 2)) ms with 1,000 rows"
        ])
    ]
  }

  /// Returns the milliseconds of processor time of one sync; the first ones open connections.
  private static func idleTime(of replica: Replica, syncs: Int) async throws -> Double {
    for _ in 0..<10 { _ = try await replica.sync() }
    let before = try ProcessFigures.read(getpid()).processorTime
    for _ in 0..<syncs {
      let report = try await replica.sync()
      guard report.pushed == 0, report.pulled == 0 else {
        throw BenchError("a sync with nothing to do exchanged something")
      }
    }
    return (try ProcessFigures.read(getpid()).processorTime - before) * 1_000 / Double(syncs)
  }

  /// Returns a replica whose rows the server has.
  private static func replica(
    _ path: String, rows: Int, _ daemon: Daemon
  ) async throws -> Replica {
    let replica = try await Replica.tasks(path, rows: rows)
    try await replica.connect(to: daemon.url, space: "idle-\(rows)")
    _ = try await replica.sync()
    return replica
  }
}
