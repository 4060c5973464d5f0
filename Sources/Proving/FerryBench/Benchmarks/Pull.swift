import FerryProtocol

extension Benchmark {
  /// A new device's first pull, as far as the server is concerned.
  static let pull = Benchmark(
    name: "pull", summary: "Changes a second served to a new device, in pages of 5,000."
  ) { context in
    let records = context.size(200_000, quick: 50_000)
    let database = try context.storeDatabase()
    let daemon = try await Daemon.start(database: database)
    let raw = try await RawStore(database: try context.makeDatabase(), connections: 1)
    let client = LoadClient(daemon)
    try await client.makeSpace("pull")
    context.begin("pull: filling", "packets", total: records / 1_000 * 2)
    try await client.fill("pull", records: records) { context.advance() }
    try await fill(raw, records: records, context)
    try await raw.vacuum()
    try await RawStore.vacuum(database: database)

    let contest = Contest(rounds: context.size(7, quick: 3), context: context)
    context.begin("pull", "rounds", total: contest.steps(contestants: 3))
    let figures = try await contest.medians([
      { try await served(client, records: records, compressed: false) },
      {
        let watch = Stopwatch()
        let rows = try await raw.readAll(space: 1, page: 1_000).rows
        guard rows == records else { throw BenchError("libpq read \(rows) of \(records) rows") }
        return Double(rows) / watch.seconds
      },
      { try await served(client, records: records, compressed: true) },
    ])
    try await daemon.stop()
    return [
      Measurement(
        name: "pull, served", figure: Amount(figures[0], .perSecond("changes")),
        raw: Amount(figures[1], .perSecond("rows")), target: .atLeast(150_000),
        notes: [
          "one connection; compressed on the wire, as devices ask: "
            + Amount(figures[2], .perSecond("changes")).text
        ])
    ]
  }

  private static func served(
    _ client: LoadClient, records: Int, compressed: Bool
  ) async throws -> Double {
    let watch = Stopwatch()
    let changes = try await client.pullAll(
      from: "pull", page: 5_000, compressed: compressed
    ).changes
    let seconds = watch.seconds
    guard changes == records else {
      throw BenchError("\(changes) changes were served of \(records)")
    }
    return Double(changes) / seconds
  }

  private static func fill(
    _ raw: RawStore, records: Int, _ context: BenchmarkContext
  ) async throws {
    var device = DeviceLoad(seed: 1)
    for start in stride(from: 0, to: records, by: 1_000) {
      let batch = RawBatch(device.packet(of: 1_000), space: 1, sequence: Int64(start) + 1)
      _ = try await raw.commit([[batch]])
      context.advance()
    }
  }
}
