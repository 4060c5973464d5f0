import FerryProtocol

extension Benchmark {
  /// Packets of 1,000 inserts over HTTP, against libpq writing the same rows.
  static let ingest = Benchmark(
    name: "ingest",
    summary: "Operations a second over HTTP, 1,000 a packet; into one space, and into four."
  ) { context in
    let daemon = try await Daemon.start(database: try context.storeDatabase())
    let raw = try await RawStore(database: try context.makeDatabase(), connections: 4)
    let one = try await IngestContest(
      name: "ingest, one space", spaces: 1, devicesPerSpace: 4, firstRawSpace: 1
    ).run(context, LoadClient(daemon), raw)
    let four = try await IngestContest(
      name: "ingest, four spaces", spaces: 4, devicesPerSpace: 2, firstRawSpace: 2
    ).run(context, LoadClient(daemon), raw)
    try await daemon.stop()
    return [one, four]
  }
}

/// Ferry and libpq writing in turns, into a number of spaces at once.
private struct IngestContest {
  let name: String
  let spaces: Int
  let devicesPerSpace: Int
  let firstRawSpace: Int64
  private let operationsPerPacket = 1_000

  init(name: String, spaces: Int, devicesPerSpace: Int, firstRawSpace: Int64) {
    self.name = name
    self.spaces = spaces
    self.devicesPerSpace = devicesPerSpace
    self.firstRawSpace = firstRawSpace
  }

  func run(
    _ context: BenchmarkContext, _ client: LoadClient, _ raw: RawStore
  ) async throws -> Measurement {
    let contest = Contest(
      rounds: context.size(7, quick: 3), context: context)
    context.begin(name, "rounds", total: contest.steps(contestants: 2))
    for space in 0..<spaces { try await client.makeSpace(spaceName(space)) }
    let packets = context.size(48, quick: 16)
    var devices = (0..<spaces * devicesPerSpace).map { DeviceLoad(seed: UInt64($0)) }
    var rawDevices = (0..<spaces).map { DeviceLoad(seed: UInt64($0)) }
    var heads = [SequenceNumber](repeating: 0, count: spaces)
    let operations = Double(packets * operationsPerPacket)
    let figures = try await contest.medians([
      {
        let load = devices.indices.map { index in
          let count = packets / devices.count
          return (
            space: spaceName(index % spaces),
            packets: devices[index].encodedPackets(count, of: operationsPerPacket)
          )
        }
        let watch = Stopwatch()
        try await client.send(load)
        return operations / watch.seconds
      },
      {
        let batches = rawDevices.indices.map { space in
          (0..<packets / spaces).map { _ in
            defer { heads[space] += Int64(operationsPerPacket) }
            return RawBatch(
              rawDevices[space].packet(of: operationsPerPacket),
              space: firstRawSpace + Int64(space), sequence: heads[space] + 1)
          }
        }
        return operations / (try await raw.commit(batches))
      },
    ])
    return Measurement(
      name: name, figure: Amount(figures[0], .perSecond("operations")),
      raw: Amount(figures[1], .perSecond("rows")), target: .ratioAtLeast(0.5),
      notes: [
        "\(spaces * devicesPerSpace) devices on separate connections against libpq on "
          + (spaces == 1 ? "1 connection" : "\(spaces) connections")
      ])
  }

  private func spaceName(_ index: Int) -> String { "ingest-\(spaces)-\(index)" }
}
