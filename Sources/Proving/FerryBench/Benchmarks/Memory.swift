import FerryCommandLine
import FerryLaboratory
import Foundation

extension Benchmark {
  /// The memory of a device during the pull of a large space.
  static let memory = Benchmark(
    name: "memory", summary: "Memory that `ferry pull` uses for a million records."
  ) { context in
    let records = context.size(1_000_000, quick: 100_000)
    let daemon = try await Daemon.start(database: try context.makeDatabase())
    let client = LoadClient(daemon)
    try await client.makeSpace("large")
    context.begin("memory: filling", "packets", total: records / 1_000)
    let filling = Stopwatch()
    try await client.fill("large", records: records) { context.advance() }
    let filled = filling.seconds
    context.begin("memory: pulling", "pulls", total: 1)
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let replica = ["--replica", directory.file("replica.db").path]
    let ferry = try Executables.ferry()
    for arguments in [
      ["init", "--server", daemon.url, "--space", "large"], ["sql", TaskRow.creation()],
      ["track", TaskRow.table],
    ] {
      let finished = try await ChildProcess.run(ferry, arguments + replica)
      guard finished.status == .exited(0) else {
        throw BenchError("ferry \(arguments[0]) failed: \(finished.error)\(finished.output)")
      }
    }
    let pull = try await MeasuredProcess.run(ferry, ["pull", "--json"] + replica)
    guard pull.output.contains("\"pulled\":\(records),") else {
      throw BenchError("ferry pull did not apply \(records) records: \(pull.output)")
    }
    let server = try ProcessFigures.read(daemon.processID)
    try await daemon.stop()
    let rate = Amount(Double(records) / pull.seconds, .perSecond("records"))
    return [
      Measurement(
        name: "memory of ferry pull", figure: Amount(Double(pull.peakResident), .bytes),
        target: .atMost(Double(150 << 20)),
        notes: [
          "\(records.grouped) records in \(pull.seconds.rounded(to: 1)) s from an empty replica to "
            + "visible, \(rate.text)",
          "ferryd held \(Amount(Double(server.resident), .bytes).text) afterwards",
          "filled over HTTP in \(filled.rounded(to: 1)) s",
        ])
    ]
  }
}
