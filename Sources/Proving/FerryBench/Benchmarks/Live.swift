import Ferry
import FerryLaboratory
import FerryProtocol

extension Benchmark {
  /// The delay until another user sees a write.
  static let live = Benchmark(
    name: "live",
    summary: "The time from a write on one device to its arrival on another that watches it."
  ) { context in
    let samples = context.size(300, quick: 60)
    let daemon = try await Daemon.start(database: try context.makeDatabase())
    let directory = try TemporaryDirectory(prefix: "ferry-bench")
    let writer = try await replica(directory.file("writer.db").path, daemon)
    let reader = try await replica(directory.file("reader.db").path, daemon)
    context.begin("live", "samples", total: samples)
    let (seen, report) = AsyncStream<Void>.makeStream()
    let watchers = [
      Task { try await writer.watch() },
      Task {
        try await reader.watch(onEvent: { event in if case .synced = event { report.yield() } })
      },
    ]
    defer { for watcher in watchers { watcher.cancel() } }
    var times: [Double] = []
    var arrivals = seen.makeAsyncIterator()
    var random = SeededRandom(seed: 11)
    for sample in 0..<(samples + 20) {
      // Long enough for both to come to rest, and never in step with anything.
      try await Task.sleep(for: .milliseconds(20 + Int(random.next() % 20)))
      let row = TaskRow(id: UniqueID.generate(), random: &random)
      let watch = Stopwatch()
      try await writer.write { database in
        try database.execute(
          "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?)",
          [.text(row.id)] + row.columns.map(\.value))
      }
      while try await !reader.has(row.id) {
        guard await arrivals.next() != nil else { throw BenchError("the reader has stopped") }
      }
      // The first ones open connections and prepare statements.
      if sample >= 20 { times.append(watch.milliseconds) }
      context.advance()
    }
    for watcher in watchers { watcher.cancel() }
    try await daemon.stop()
    return [
      Measurement(
        name: "live, p50", figure: Amount(times.percentile(50), .milliseconds),
        target: .atMost(15),
        notes: [
          "p99 \(times.percentile(99).rounded(to: 1)) ms, at most "
            + "\(times.percentile(100).rounded(to: 1)) ms, of \(times.count) samples"
        ])
    ]
  }

  private static func replica(_ path: String, _ daemon: Daemon) async throws -> Replica {
    let replica = try await Replica.open(path)
    try await replica.write { try $0.execute(TaskRow.creation()) }
    try await replica.track(Name(TaskRow.table))
    try await replica.connect(to: daemon.url, space: "live")
    return replica
  }
}

extension Replica {
  /// Returns `true` if the replica shows a task.
  func has(_ id: String) async throws -> Bool {
    try await read { database in
      try !database.query("SELECT 1 FROM tasks WHERE id = ?", [.text(id)]).isEmpty
    }
  }
}
